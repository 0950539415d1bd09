//! Pass after pass, in the background.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::pace::stagger;
use super::{Pass, Purger};
use crate::error::{Error, ErrorKind};
use crate::store::{Borrowed, Store, schema};
use crate::telemetry;

/// How often consumers are asked whether they have caught up.
const ASK: Duration = Duration::from_secs(5);

/// A time without any node after which the wait of a start begins anew. Who restarts all the time was never away as long;
/// who was away for hours may have a backlog of redeliveries again.
const GAP_SECS: i64 = 900;

/// Begins to purge.
pub(super) fn spawn<S: Store>(purger: Purger<S>) -> Purging {
    let stop = Arc::new(Stop::default());
    let task = tokio::spawn(run(purger, Arc::clone(&stop)));
    Purging { stop, task: Some(task) }
}

/// What became of one round.
enum Round {
    /// The wait after the start is not over.
    Waiting,
    Passed(Pass),
}

/// One round after the other. The time of the next one is counted from the end of the last, so that nothing is made up
/// after a stall.
async fn run<S: Store>(purger: Purger<S>, stop: Arc<Stop>) {
    let random = RandomState::new().build_hasher().finish();
    let mut next = stagger(purger.interval, random);
    let (mut failures, mut may_begin) = (0_u32, false);
    while !stop.within(next).await {
        next = purger.interval;
        // A round that panicked leaves nothing behind but its lease, which ends by itself.
        let round = AssertUnwindSafe(round(&purger, &mut may_begin, &stop)).catch_unwind().await;
        match round.unwrap_or_else(|_| Err(Error::new(ErrorKind::Panicked).detail("a round of the purge"))) {
            Ok(Round::Waiting) => next = ASK.min(purger.interval),
            Ok(Round::Passed(pass)) => {
                failures = if pass.failures.is_empty() { 0 } else { failures.saturating_add(1) };
                if let Some((_, error)) = pass.failures.first() {
                    telemetry::pass_failed(failures, error);
                }
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                telemetry::pass_failed(failures, &error);
            }
        }
    }
}

async fn round<S: Store>(purger: &Purger<S>, may_begin: &mut bool, stop: &Stop) -> Result<Round, Error> {
    let engine = &purger.engine;
    // Each node says so, whoever purges.
    engine.still_here().await?;
    engine.flush_ages().await?;
    *may_begin = *may_begin || is_wait_over(purger).await?;
    if !*may_begin {
        return Ok(Round::Waiting);
    }
    Ok(Round::Passed(purger.pass_until(&|| stop.is_told()).await?))
}

/// Whether the wait after a start is over. Without an answer from the database it is not.
async fn is_wait_over<S: Store>(purger: &Purger<S>) -> Result<bool, Error> {
    let mut conn = Borrowed::from(purger.engine.pool()).await?;
    let waited = S::waiting_secs(&mut conn, GAP_SECS).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    let waited = Duration::from_secs(u64::try_from(waited).unwrap_or(0));
    if waited >= purger.start_hold {
        return Ok(true);
    }
    telemetry::waiting(waited, purger.start_hold);
    match &purger.caught_up {
        Some(caught_up) => Ok(caught_up().await),
        None => Ok(false),
    }
}

/// Purges in the background, until it is dropped or told to stop.
#[derive(Debug)]
#[must_use = "dropping it ends the purge"]
pub struct Purging {
    stop: Arc<Stop>,
    task: Option<JoinHandle<()>>,
}

impl Purging {
    /// Ends the purge after the batch that runs, and waits for that.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the purge ends all the same.
    pub async fn stop(mut self) {
        self.stop.tell();
        if let Some(task) = self.task.take() {
            // A task that was cancelled has ended.
            drop(task.await);
        }
    }
}

impl Drop for Purging {
    fn drop(&mut self) {
        self.stop.tell();
    }
}

#[derive(Debug, Default)]
struct Stop {
    told: AtomicBool,
    wake: Notify,
}

impl Stop {
    fn tell(&self) {
        self.told.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    fn is_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    /// Whether it is told to stop within this time.
    async fn within(&self, time: Duration) -> bool {
        let told = tokio::time::timeout(time, self.wake.notified()).await.is_ok();
        told || self.is_told()
    }
}
