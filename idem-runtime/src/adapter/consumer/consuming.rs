//! A consumer at work, as its application holds it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::super::{AdapterError, Lag};
use crate::telemetry;

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

pub(super) type AskLag = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<Lag>, AdapterError>> + Send + Sync>;

/// Consumes in the background, until it is dropped or told to stop.
#[must_use = "dropping it ends the consumer"]
pub struct Consuming {
    pub(super) phase: Arc<watch::Sender<Phase>>,
    pub(super) in_flight: watch::Receiver<usize>,
    pub(super) lag: AskLag,
    pub(super) task: Option<JoinHandle<()>>,
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
                Ok(Some(lag)) if is_idle && lag.messages == 0 => return,
                Ok(None) if is_idle => idle += 1,
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
            Box::pin(async move { lag.await.is_ok_and(|lag| lag.is_some_and(|lag| lag.messages == 0)) })
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

pub(super) async fn stopped(phase: &mut watch::Receiver<Phase>) {
    reached(phase, Phase::Stopping).await;
}

/// Waits until the consumer is so far on its way to its end. The sender lives as long as the consumer.
pub(super) async fn reached(phase: &mut watch::Receiver<Phase>, end: Phase) {
    drop(phase.wait_for(|phase| *phase >= end).await);
}

/// Tells the metrics how much waits.
pub(super) async fn watch_lag(lag: AskLag, mut phase: watch::Receiver<Phase>, broker: &'static str, source: String) {
    while timeout(ASK_LAG, stopped(&mut phase)).await.is_err() {
        if let Ok(Some(lag)) = lag().await {
            telemetry::consumer_lag(broker, &source, lag);
        }
    }
}
