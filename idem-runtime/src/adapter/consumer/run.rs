//! The loop: receive, hand out, connect anew, end.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::super::{Adapter, Delivery, Lag, Retries, Settlement};
use super::one::Shared;
use crate::store::Store;
use crate::telemetry;

/// A delivery that waits for its next attempt in this process holds no handler up, and these bound how many there are.
const WAITING_PER_HANDLER: usize = 4;

/// How long a call for deliveries that is under way may still take after the consumer was told to stop.
const LAST_CALL: Duration = Duration::from_millis(500);

/// How long what was abandoned may take to be given back.
const GIVING_BACK: Duration = Duration::from_secs(5);

/// How often the broker is asked how much waits.
const ASK_LAG: Duration = Duration::from_secs(15);

/// How often [`Consuming::until_settled`] looks.
const LOOK: Duration = Duration::from_millis(50);

/// How far a consumer is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Running,
    /// Nothing is received any more, and what is in flight ends.
    Stopping,
    /// What is in flight is rolled back and given back.
    Abandoning,
}

type AskLag = Arc<dyn Fn() -> BoxFuture<'static, Option<Lag>> + Send + Sync>;

/// Consumes in the background, until it is dropped or told to stop.
#[must_use = "dropping it ends the consumer"]
pub struct Consuming {
    phase: Arc<watch::Sender<Phase>>,
    in_flight: watch::Receiver<usize>,
    lag: AskLag,
    task: Option<JoinHandle<()>>,
}

pub(super) fn spawn<S: Store, A: Adapter>(shared: Shared<S, A>, concurrency: usize, grace: Duration) -> Consuming {
    let shared = Arc::new(shared);
    let phase = Arc::new(watch::Sender::new(Phase::Running));
    let (told, in_flight) = watch::channel(0);
    let asked = Arc::clone(&shared);
    let lag: AskLag = Arc::new(move || {
        let shared = Arc::clone(&asked);
        Box::pin(async move { shared.adapter.lag().await.ok().flatten() })
    });
    let held = match A::RETRIES {
        Retries::ByBroker => concurrency,
        Retries::InProcess => concurrency.saturating_mul(WAITING_PER_HANDLER),
    };
    let run = Run {
        shared,
        phase: Arc::clone(&phase),
        running: Arc::new(Semaphore::new(concurrency.min(Semaphore::MAX_PERMITS))),
        held,
        tasks: JoinSet::new(),
        orders: HashMap::new(),
        waiting: HashMap::new(),
        told,
    };
    tokio::spawn(watch_lag(Arc::clone(&lag), phase.subscribe(), A::BROKER, run.shared.adapter.source()));
    Consuming { phase, in_flight, lag, task: Some(tokio::spawn(run.until_stopped(grace))) }
}

impl Consuming {
    /// Stops receiving, lets what is in flight end, or gives it back after the grace, and waits for that.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the consumer ends all the same, in the background.
    pub async fn stop(mut self) {
        self.tell();
        if let Some(task) = self.task.take() {
            // A task that was cancelled, with its runtime, has ended.
            drop(task.await);
        }
    }

    /// Waits until nothing is in flight and nothing waits at the broker: for programs that consume what is there, and for
    /// tests. Where the broker cannot be asked, until nothing came for two seconds.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only looks.
    pub async fn until_settled(&self) {
        let mut idle = 0;
        let blind_looks = 2_000 / LOOK.as_millis();
        while idle < blind_looks {
            let is_idle = *self.in_flight.borrow() == 0;
            match (self.lag)().await {
                Some(lag) if is_idle && lag.messages == 0 => return,
                None if is_idle => idle += 1,
                _ => idle = 0,
            }
            sleep(LOOK).await;
        }
    }

    /// Says when the consumer has caught up with its broker; for [`Purger::caught_up`](crate::Purger::caught_up).
    pub fn caught_up(&self) -> impl Fn() -> BoxFuture<'static, bool> + Send + Sync + use<> {
        let lag = Arc::clone(&self.lag);
        move || {
            let lag = lag();
            Box::pin(async move { lag.await.is_some_and(|lag| lag.messages == 0) })
        }
    }

    /// How many deliveries are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        *self.in_flight.borrow()
    }

    fn tell(&self) {
        self.phase.send_if_modified(|phase| {
            let is_news = *phase == Phase::Running;
            if is_news {
                *phase = Phase::Stopping;
            }
            is_news
        });
    }
}

impl Drop for Consuming {
    fn drop(&mut self) {
        self.tell();
    }
}

impl fmt::Debug for Consuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consuming").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

struct Run<S: Store, A: Adapter> {
    shared: Arc<Shared<S, A>>,
    phase: Arc<watch::Sender<Phase>>,
    running: Arc<Semaphore>,
    /// As many deliveries may be taken from the broker and not settled.
    held: usize,
    tasks: JoinSet<()>,
    /// Which order each task of an ordered delivery keeps up.
    orders: HashMap<Id, u64>,
    /// What waits for the one before it; an empty entry for an order of which one is in flight.
    waiting: HashMap<u64, VecDeque<Delivery<A::Receipt>>>,
    told: watch::Sender<usize>,
}

impl<S: Store, A: Adapter> Run<S, A> {
    async fn until_stopped(mut self, grace: Duration) {
        let mut stop = self.phase.subscribe();
        let shared = Arc::clone(&self.shared);
        loop {
            if self.make_room(&mut stop).await {
                break;
            }
            let mut receive = std::pin::pin!(shared.adapter.receive(self.room()));
            let received = loop {
                tokio::select! {
                    received = &mut receive => break Some(received),
                    Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                    () = stopped(&mut stop) => break timeout(LAST_CALL, &mut receive).await.ok(),
                }
            };
            let is_stopped = *stop.borrow() != Phase::Running;
            match received {
                Some(Ok(deliveries)) if is_stopped => self.give_back(deliveries).await,
                Some(Ok(deliveries)) => deliveries.into_iter().for_each(|delivery| self.hand_out(delivery)),
                Some(Err(error)) if !is_stopped => {
                    telemetry::disconnected(A::BROKER, &shared.adapter.source(), &error);
                    if self.connect_anew(&mut stop).await {
                        break;
                    }
                }
                _ => {}
            }
            if is_stopped {
                break;
            }
        }
        self.end(grace).await;
    }

    /// Waits until there is room for a delivery, and as long as the database cannot be used. Says whether to stop.
    async fn make_room(&mut self, stop: &mut watch::Receiver<Phase>) -> bool {
        loop {
            while let Some(ended) = self.tasks.try_join_next_with_id() {
                self.ended(ended);
            }
            let troubles = self.shared.troubles.load(Ordering::Relaxed);
            if self.room() > 0 && troubles == 0 {
                return *stop.borrow() != Phase::Running;
            }
            if self.tasks.is_empty() {
                // One delivery finds out whether the database is back.
                let pause = self.shared.retry.again(troubles, 0);
                telemetry::paused(A::BROKER, pause);
                return tokio::select! {
                    () = sleep(pause) => false,
                    () = stopped(stop) => true,
                };
            }
            tokio::select! {
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                () = stopped(stop) => return true,
            }
        }
    }

    fn room(&self) -> usize {
        match self.shared.troubles.load(Ordering::Relaxed) {
            0 => self.held.saturating_sub(self.in_flight()),
            _ => usize::from(self.tasks.is_empty()),
        }
    }

    fn in_flight(&self) -> usize {
        self.tasks.len() + self.waiting.values().map(VecDeque::len).sum::<usize>()
    }

    fn hand_out(&mut self, delivery: Delivery<A::Receipt>) {
        if let Some(order) = delivery.order {
            if let Some(before) = self.waiting.get_mut(&order) {
                before.push_back(delivery);
                return self.tell();
            }
            self.waiting.insert(order, VecDeque::new());
        }
        self.start(delivery);
    }

    fn start(&mut self, delivery: Delivery<A::Receipt>) {
        let order = delivery.order;
        let handled = Arc::clone(&self.shared).handle(delivery, Arc::clone(&self.running), self.phase.subscribe());
        let id = self.tasks.spawn(handled).id();
        if let Some(order) = order {
            self.orders.insert(id, order);
        }
        self.tell();
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                telemetry::task_panicked(A::BROKER, &error);
                error.id()
            }
        };
        if let Some(order) = self.orders.remove(&id) {
            match self.waiting.get_mut(&order).and_then(VecDeque::pop_front) {
                Some(next) => self.start(next),
                None => drop(self.waiting.remove(&order)),
            }
        }
        self.tell();
    }

    fn tell(&self) {
        self.told.send_replace(self.in_flight());
    }

    /// Connects until it works. Says whether to stop.
    async fn connect_anew(&mut self, stop: &mut watch::Receiver<Phase>) -> bool {
        let shared = Arc::clone(&self.shared);
        for failures in 1_u32.. {
            let connecting = async {
                sleep(shared.retry.again(failures, 0)).await;
                shared.adapter.connect().await
            };
            let mut connecting = std::pin::pin!(connecting);
            let connected = loop {
                tokio::select! {
                    connected = &mut connecting => break connected,
                    Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                    () = stopped(stop) => return true,
                }
            };
            match connected {
                Ok(connected) => {
                    shared.set_lease(connected.lease);
                    telemetry::connected_anew(A::BROKER, &shared.adapter.source(), failures);
                    return false;
                }
                Err(error) => telemetry::not_connected(A::BROKER, &shared.adapter.source(), failures, &error),
            }
        }
        false
    }

    async fn give_back(&self, deliveries: Vec<Delivery<A::Receipt>>) {
        for delivery in deliveries {
            self.shared.settle(&delivery, &Settlement::Release { after: Duration::ZERO }).await;
        }
    }

    /// Lets what is in flight end, gives the rest back, and closes the connection.
    async fn end(mut self, grace: Duration) {
        let waiting: Vec<_> = self.waiting.drain().flat_map(|(_, waiting)| waiting).collect();
        self.orders.clear();
        self.give_back(waiting).await;
        if timeout(grace, self.all_ended()).await.is_err() {
            telemetry::abandoned(A::BROKER, self.tasks.len());
            self.phase.send_replace(Phase::Abandoning);
            drop(timeout(GIVING_BACK, self.all_ended()).await);
        }
        self.tasks.shutdown().await;
        self.tell();
        self.shared.adapter.close().await;
    }

    async fn all_ended(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.ended(ended);
        }
    }
}

async fn stopped(phase: &mut watch::Receiver<Phase>) {
    reached(phase, Phase::Stopping).await;
}

/// Waits until the consumer is so far on its way to its end. The sender lives as long as the consumer.
pub(super) async fn reached(phase: &mut watch::Receiver<Phase>, end: Phase) {
    drop(phase.wait_for(|phase| *phase >= end).await);
}

/// Tells the metrics how much waits.
async fn watch_lag(lag: AskLag, mut phase: watch::Receiver<Phase>, broker: &'static str, source: String) {
    while timeout(ASK_LAG, stopped(&mut phase)).await.is_err() {
        if let Some(lag) = lag().await {
            telemetry::consumer_lag(broker, &source, lag);
        }
    }
}
