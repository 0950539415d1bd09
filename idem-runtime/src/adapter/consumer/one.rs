//! What happens to one delivery: decode, handle, settle.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::{Semaphore, watch};

use super::super::{Adapter, AdapterError, AdapterFault, Delivery, Retries, Settlement};
use super::consuming::{Phase, reached};
use super::retry::RetryPolicy;
use super::route::{Call, Handled, Routed};
use crate::engine::{Engine, panic_text};
use crate::error::ErrorKind;
use crate::outcome::Settle;
use crate::store::Store;
use crate::telemetry;

/// How often a settlement is tried while the broker can be reached.
const SETTLE_TRIES: u32 = 3;

/// What all deliveries of a consumer share.
pub(super) struct Shared<S: Store, A: Adapter> {
    pub(super) engine: Engine<S>,
    pub(super) adapter: A,
    pub(super) routes: Vec<Box<dyn Routed<S>>>,
    pub(super) retry: RetryPolicy,
    /// In milliseconds; zero for none. It can be another one after a reconnect.
    lease: AtomicU64,
    /// How many deliveries in a row ended because the database could not be used.
    pub(super) troubles: AtomicU32,
}

/// What a task leaves to do.
pub(super) struct Left<R> {
    /// Deliveries of a batch that are not decided. They come before what waits for them.
    pub(super) alone: Vec<Delivery<R>>,
    /// Whether the delivery comes again, so that what comes after it in its order may not overtake it.
    pub(super) postponed: bool,
}

/// What is to be told the broker, and what is to be counted.
enum Verdict {
    Done,
    /// May succeed later, and the event counts its attempts.
    Failed(String),
    /// May succeed later, and nobody can blame the event: it is being applied elsewhere.
    Busy,
    /// The same, and the next one would meet it as well: the database cannot be used.
    Trouble,
    /// Never succeeds.
    Hopeless(String),
}

impl<S: Store, A: Adapter> Shared<S, A> {
    pub(super) fn new(
        engine: Engine<S>,
        adapter: A,
        routes: Vec<Box<dyn Routed<S>>>,
        retry: RetryPolicy,
        lease: Option<Duration>,
    ) -> Self {
        let shared = Self { engine, adapter, routes, retry, lease: AtomicU64::new(0), troubles: AtomicU32::new(0) };
        shared.set_lease(lease);
        shared
    }

    pub(super) fn set_lease(&self, lease: Option<Duration>) {
        let millis = lease.map_or(0, |lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        self.lease.store(millis, Ordering::Relaxed);
    }

    /// Handles a delivery until it is settled. `running` bounds how many handlers run; a delivery that waits here for its
    /// next attempt does not count.
    pub(super) async fn handle_one(
        self: Arc<Self>,
        delivery: Delivery<A::Receipt>,
        running: Arc<Semaphore>,
        phase: watch::Receiver<Phase>,
    ) -> Left<A::Receipt> {
        let settlement = self.handle_until_decided(&delivery, &running, phase).await;
        if let Some(settlement) = &settlement {
            self.settle(&delivery, settlement).await;
        }
        let postponed = matches!(settlement, Some(Settlement::Retry { .. } | Settlement::Release { .. }));
        Left { alone: Vec::new(), postponed }
    }

    /// `None` when it is settled.
    async fn handle_until_decided(
        &self,
        delivery: &Delivery<A::Receipt>,
        running: &Semaphore,
        mut phase: watch::Receiver<Phase>,
    ) -> Option<Settlement> {
        let deliveries = std::slice::from_ref(delivery);
        let mut attempt = delivery.attempt.max(1);
        let given_back = Some(Settlement::Release { after: Duration::ZERO });
        loop {
            let permit = tokio::select! {
                permit = self.keeping(deliveries, running.acquire()) => permit,
                () = reached(&mut phase, Phase::Stopping) => return given_back,
            };
            // Nobody closes it.
            let Ok(permit) = permit else { return given_back };
            let acked = AtomicBool::new(false);
            let settlement = tokio::select! {
                settlement = self.keeping_until(&acked, deliveries, self.caught(delivery, attempt, &acked)) => settlement,
                // Dropping the attempt rolls it back, or loses it, if it was acknowledged first.
                () = reached(&mut phase, Phase::Abandoning) => {
                    return given_back.filter(|_| !acked.load(Ordering::Relaxed));
                }
            };
            drop(permit);
            let after = match &settlement {
                Some(Settlement::Retry { after } | Settlement::Release { after })
                    if A::RETRIES == Retries::InProcess =>
                {
                    *after
                }
                _ => return settlement,
            };
            let pause = async {
                tokio::select! {
                    () = tokio::time::sleep(after) => false,
                    () = reached(&mut phase, Phase::Stopping) => true,
                }
            };
            if self.keeping(deliveries, pause).await {
                return given_back;
            }
            attempt += u32::from(matches!(settlement, Some(Settlement::Retry { .. })));
        }
    }

    /// One attempt. What the application's own code panics with, outside of its handlers, is a failure of the attempt.
    async fn caught(&self, delivery: &Delivery<A::Receipt>, attempt: u32, acked: &AtomicBool) -> Option<Settlement> {
        let caught = AssertUnwindSafe(self.attempt(delivery, attempt, acked)).catch_unwind().await;
        caught.unwrap_or_else(|panic| {
            if acked.load(Ordering::Relaxed) {
                return None;
            }
            let text = format!("a route or a handler's error panicked: {}", panic_text(&*panic));
            Some(self.judge(Verdict::Failed(text), attempt))
        })
    }

    /// One attempt, and how to settle it; `None` when it is settled. `acked` is set before an acknowledgement that comes
    /// first: nothing else may be said of the delivery from then on.
    async fn attempt(&self, delivery: &Delivery<A::Receipt>, attempt: u32, acked: &AtomicBool) -> Option<Settlement> {
        let incoming = &delivery.message;
        let mut calls: Vec<(&dyn Routed<S>, Call<'_>)> = Vec::new();
        for route in self.routes.iter().map(AsRef::as_ref).filter(|route| route.takes(incoming)) {
            match route.prepare(&self.engine, incoming) {
                Ok(call) => calls.push((route, call)),
                Err(error) => {
                    telemetry::malformed(route.meta(), A::BROKER, incoming.body.len());
                    return Some(Settlement::DeadLetter { reason: error.to_string() });
                }
            }
        }
        if calls.is_empty() {
            telemetry::unrouted(A::BROKER, &self.adapter.source());
            return Some(Settlement::DeadLetter { reason: "no handler of the consumer takes this message".to_owned() });
        }
        let (first_acked, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(route, _)| route.is_at_most_once());
        let verdict = all(others).await;
        let settlement = self.judge(verdict, attempt);
        if settlement != Settlement::Ack || first_acked.is_empty() {
            return Some(settlement);
        }
        acked.store(true, Ordering::Relaxed);
        // Without the broker's word for it the delivery may come again, and "at most once" would not be.
        if let Err(error) = self.adapter.acknowledge_first(delivery).await {
            telemetry::not_settled(A::BROKER, &self.adapter.source(), "ack", &error);
            return None;
        }
        telemetry::settled(A::BROKER, "ack");
        for (_, call) in first_acked {
            // A failure is reported by the engine as a loss.
            drop(call.await);
        }
        None
    }

    fn judge(&self, verdict: Verdict, attempt: u32) -> Settlement {
        let random = RandomState::new().build_hasher().finish();
        match verdict {
            Verdict::Done => {
                self.troubles.store(0, Ordering::Relaxed);
                Settlement::Ack
            }
            Verdict::Busy => Settlement::Release { after: self.retry.again(1, random) },
            Verdict::Trouble => {
                let troubles = self.troubles.fetch_add(1, Ordering::Relaxed).saturating_add(1);
                Settlement::Release { after: self.retry.again(troubles, random) }
            }
            Verdict::Failed(text) => match self.retry.after(attempt, random) {
                Some(after) => {
                    telemetry::retrying(A::BROKER, attempt, after, &text);
                    Settlement::Retry { after }
                }
                None => {
                    let reason = format!("given up after {attempt} attempts; the last one: {text}");
                    telemetry::dead_lettered(A::BROKER, &self.adapter.source(), attempt);
                    Settlement::DeadLetter { reason }
                }
            },
            Verdict::Hopeless(reason) => {
                telemetry::dead_lettered(A::BROKER, &self.adapter.source(), attempt);
                Settlement::DeadLetter { reason }
            }
        }
    }

    /// Tells the broker, again where it did not hear. What cannot be told comes again.
    pub(super) async fn settle(&self, delivery: &Delivery<A::Receipt>, settlement: &Settlement) {
        let how = settlement.name();
        let deliveries = std::slice::from_ref(delivery);
        for tries in 1..=SETTLE_TRIES {
            let error = match self.keeping(deliveries, self.adapter.settle(delivery, settlement)).await {
                Ok(()) => return telemetry::settled(A::BROKER, how),
                Err(error) => error,
            };
            telemetry::not_settled(A::BROKER, &self.adapter.source(), how, &error);
            match (error.fault, settlement) {
                // No place for dead letters: kept back, so that it does not come again at once and for ever.
                (AdapterFault::Refused, Settlement::DeadLetter { .. }) => {
                    let after = self.retry.again(u32::MAX, 0);
                    let kept = self.adapter.settle(delivery, &Settlement::Retry { after }).await;
                    if let Err(error) = kept {
                        telemetry::not_settled(A::BROKER, &self.adapter.source(), "retry", &error);
                    }
                    return;
                }
                (AdapterFault::Unreachable, _) if tries < SETTLE_TRIES => {
                    tokio::time::sleep(self.retry.again(tries, 0)).await;
                }
                _ => return,
            }
        }
    }

    /// Does something for deliveries, and says all along that they are not abandoned.
    pub(super) async fn keeping<T>(&self, deliveries: &[Delivery<A::Receipt>], work: impl Future<Output = T>) -> T {
        self.keeping_until(&AtomicBool::new(false), deliveries, work).await
    }

    /// The same, until they are acknowledged while the work goes on.
    async fn keeping_until<T>(
        &self,
        acked: &AtomicBool,
        deliveries: &[Delivery<A::Receipt>],
        work: impl Future<Output = T>,
    ) -> T {
        let lease = self.lease.load(Ordering::Relaxed);
        if lease == 0 {
            return work.await;
        }
        // Beside the work and not in between: on SQLite the extension waits for the handler's transaction.
        let extending = async {
            loop {
                tokio::time::sleep(Duration::from_millis((lease / 3).max(1))).await;
                if !acked.load(Ordering::Relaxed) {
                    join_all(deliveries.iter().map(|delivery| self.extend(&delivery.receipt))).await;
                }
            }
        };
        tokio::select! {
            done = work => done,
            never = extending => never,
        }
    }

    async fn extend(&self, receipt: &A::Receipt) {
        let extended: Result<(), AdapterError> = self.adapter.extend(receipt).await;
        if let Err(error) = extended {
            telemetry::not_settled(A::BROKER, &self.adapter.source(), "extend", &error);
        }
    }
}

/// Calls one handler after the other. Those that are done stay done: the next attempt finds duplicates of them.
async fn all<S: Store>(calls: Vec<(&dyn Routed<S>, Call<'_>)>) -> Verdict {
    let mut worst = Verdict::Done;
    for (_, call) in calls {
        let verdict = match call.await {
            Handled::Done => Verdict::Done,
            Handled::Failed { settle: Settle::DeadLetter, text, .. } => Verdict::Hopeless(text),
            Handled::Failed { kind: Some(ErrorKind::Busy), .. } => Verdict::Busy,
            Handled::Failed { kind: Some(kind), .. } if is_trouble(kind) => Verdict::Trouble,
            Handled::Failed { text, .. } => Verdict::Failed(text),
        };
        worst = worst.or(verdict);
    }
    worst
}

/// Whether the database is to blame, and not the event.
fn is_trouble(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::ReadOnly | ErrorKind::Schema | ErrorKind::CommitUnknown)
}

impl Verdict {
    /// What two handlers of one message come to: it is tried again as long as that can help one of them.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) | (other, Self::Done) => other,
            (Self::Trouble, _) | (_, Self::Trouble) => Self::Trouble,
            (Self::Busy, _) | (_, Self::Busy) => Self::Busy,
            (Self::Hopeless(one), Self::Hopeless(other)) => Self::Hopeless(format!("{one}; {other}")),
            (Self::Failed(one) | Self::Hopeless(one), Self::Failed(other) | Self::Hopeless(other)) => {
                Self::Failed(format!("{one}; {other}"))
            }
        }
    }
}

impl Settlement {
    fn name(&self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Retry { .. } => "retry",
            Self::Release { .. } => "release",
            Self::DeadLetter { .. } => "dead-letter",
        }
    }
}
