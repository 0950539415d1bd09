//! The loop: receive, hand out, connect anew, end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{sleep, timeout};

use super::super::{Adapter, Retries};
use super::consuming::{AskLag, Consuming, Phase, stopped, watch_lag};
use super::hand_out::{Flight, Waiting};
use super::one::{Left, Shared};
use crate::store::Store;
use crate::telemetry;

/// A delivery that waits for its next attempt in this process holds no handler up, and these bound how many there are.
const WAITING_PER_HANDLER: usize = 4;

/// How long a call for deliveries that is under way may still take after the consumer was told to stop.
const LAST_CALL: Duration = Duration::from_millis(500);

/// How long what was abandoned may take to be given back.
const GIVING_BACK: Duration = Duration::from_secs(5);

/// How much a consumer takes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many handlers run at once.
    pub(super) concurrency: usize,
    /// How many deliveries share a transaction.
    pub(super) batch: usize,
    /// How long what is in flight may take to end.
    pub(super) grace: Duration,
}

pub(super) fn spawn<S: Store, A: Adapter>(shared: Shared<S, A>, limits: Limits) -> Consuming {
    let Limits { concurrency, batch, grace } = limits;
    let shared = Arc::new(shared);
    let phase = Arc::new(watch::Sender::new(Phase::Running));
    let (told, in_flight) = watch::channel(0);
    let asked = Arc::clone(&shared);
    let lag: AskLag = Arc::new(move || {
        let shared = Arc::clone(&asked);
        Box::pin(async move { shared.adapter.lag().await })
    });
    let per_handler = match A::RETRIES {
        Retries::ByBroker => batch,
        Retries::InProcess => batch.max(WAITING_PER_HANDLER),
    };
    let run = Run {
        shared,
        phase: Arc::clone(&phase),
        running: Arc::new(Semaphore::new(concurrency.min(Semaphore::MAX_PERMITS))),
        held: concurrency.saturating_mul(per_handler),
        batch,
        tasks: JoinSet::new(),
        flights: HashMap::new(),
        waiting: HashMap::new(),
        told,
    };
    tokio::spawn(watch_lag(Arc::clone(&lag), phase.subscribe(), A::BROKER, run.shared.adapter.source()));
    Consuming { phase, in_flight, lag, task: Some(tokio::spawn(run.until_stopped(grace))) }
}

pub(super) struct Run<S: Store, A: Adapter> {
    pub(super) shared: Arc<Shared<S, A>>,
    pub(super) phase: Arc<watch::Sender<Phase>>,
    pub(super) running: Arc<Semaphore>,
    /// As many deliveries may be taken from the broker and not settled.
    pub(super) held: usize,
    /// As many deliveries share a transaction.
    pub(super) batch: usize,
    pub(super) tasks: JoinSet<Left<A::Receipt>>,
    /// What each task works on.
    pub(super) flights: HashMap<Id, Flight>,
    /// What waits for the ones before it; an empty entry for an order of which one is in flight.
    pub(super) waiting: HashMap<u64, VecDeque<Waiting<A::Receipt>>>,
    pub(super) told: watch::Sender<usize>,
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
                Some(Ok(deliveries)) if is_stopped => drop(self.shared.give_back(&deliveries).await),
                Some(Ok(deliveries)) => self.hand_out(deliveries),
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

    /// Lets what is in flight end, gives the rest back, and closes the connection.
    async fn end(mut self, grace: Duration) {
        let waiting = self.waiting.drain().flat_map(|(_, waiting)| waiting);
        let waiting: Vec<_> = waiting.map(|waiting| waiting.delivery).collect();
        self.shared.give_back(&waiting).await;
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
