//! Deletes keys once they are older than their handler's retention.

mod figures;
mod forget;
mod hold;
mod pace;
mod pass;
mod run;
pub(crate) mod target;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::engine::Engine;
use crate::error::Error;
use crate::store::Store;

pub use figures::{HandlerFigures, Orphan, figures, orphans};
pub use forget::{Forgotten, FoundKey, find_key, forget, forgotten};
pub use hold::{Hold, holds, place_hold, release_hold};
pub use pass::{Exposed, Pass, Purged, Stopped};
pub use run::Purging;

use pass::Way;

/// How often a pass is made.
const INTERVAL: Duration = Duration::from_secs(600);

/// How many keys a statement deletes.
const BATCH: u32 = 1_000;

/// The least pause between two batches.
const PAUSE: Duration = Duration::from_millis(20);

/// How long after a start nothing is purged, if nobody says when the consumers have caught up.
const START_HOLD: Duration = Duration::from_secs(900);

/// The longest wait for consumers that have to catch up.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// Says whether the consumers have caught up with their brokers.
type CaughtUp = Arc<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// Is told the handler, and how many of its keys a batch deleted.
type AfterBatch = Arc<dyn Fn(&str, u64) + Send + Sync>;

/// Deletes the keys of every handler once they are older than its retention.
///
/// One pass after another: oldest keys first, in small transactions of their own, paced, and by one node at a time. What
/// may go is decided by the database's clock and by the retention in the code, so lengthening it today saves the keys that
/// were written yesterday. `docs/retention.md` has the rules.
///
/// ```standalone_crate
/// # use idem_runtime::{Engine, Purger, idempotent};
/// # use sqlx::{Sqlite, Transaction};
/// # struct Paid { order_id: String }
/// # #[idempotent(key(msg.order_id), retention = "7d")]
/// # async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> { Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # idem_runtime::migrate(&pool).await?;
/// let engine = Engine::start(pool).await?;
/// let purging = Purger::new(&engine).spawn();
/// // … until the application ends:
/// purging.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "nothing is purged before `spawn` or `pass`"]
pub struct Purger<S: Store> {
    engine: Engine<S>,
    interval: Duration,
    batch: u32,
    pause: Duration,
    start_hold: Duration,
    caught_up: Option<CaughtUp>,
    only: Option<String>,
    after_batch: AfterBatch,
}

impl<S: Store> Purger<S> {
    /// A purger with the defaults.
    pub fn new(engine: &Engine<S>) -> Self {
        let (interval, batch, pause, start_hold) = (INTERVAL, BATCH, PAUSE, START_HOLD);
        let (caught_up, only, after_batch): (_, _, AfterBatch) = (None, None, Arc::new(|_, _| ()));
        Self { engine: engine.clone(), interval, batch, pause, start_hold, caught_up, only, after_batch }
    }

    /// The time between two passes. Default: 10 minutes; at least a second. The first one begins somewhere in the first
    /// tenth of it, and passes that were missed are not made up.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_secs(1));
        self
    }

    /// How many keys a statement deletes at most. Default: 1,000; from 1 to 100,000. It is halved where locks are met.
    pub fn batch_size(mut self, keys: u32) -> Self {
        self.batch = keys.clamp(1, 100_000);
        self
    }

    /// The least pause between two batches. Default: 20 milliseconds; at most 10 seconds. It is longer after a batch that
    /// took longer.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause.min(pace::LONGEST_PAUSE);
        self
    }

    /// How long after a start nothing is purged: an application that was down for hours has a backlog of redeliveries, whose
    /// keys must not go first. Default: 15 minutes, counted from the first start since the last pass, in the database, so
    /// that a process that restarts every minute still purges. With [`caught_up`](Self::caught_up), where it is the longest
    /// wait: an hour.
    pub fn start_hold(mut self, hold: Duration) -> Self {
        self.start_hold = hold;
        self
    }

    /// Asks, every five seconds after a start, whether the consumers have caught up with their brokers, and begins to purge
    /// when they have, or when the [start hold](Self::start_hold) is over.
    pub fn caught_up(mut self, caught_up: impl Fn() -> BoxFuture<'static, bool> + Send + Sync + 'static) -> Self {
        if self.start_hold == START_HOLD {
            self.start_hold = LONGEST_WAIT;
        }
        self.caught_up = Some(Arc::new(caught_up));
        self
    }

    /// Purges the keys of this handler alone, of this program or recorded for its application. Not meant to
    /// [`spawn`](Self::spawn), after which no other handler's keys would ever go.
    pub fn only(mut self, handler: impl Into<String>) -> Self {
        self.only = Some(handler.into());
        self
    }

    /// Is told after each batch which handler's keys it deleted, and how many; for whoever watches a pass.
    pub fn after_batch(mut self, told: impl Fn(&str, u64) + Send + Sync + 'static) -> Self {
        self.after_batch = Arc::new(told);
        self
    }

    /// Purges until the handle is dropped or told to stop. A pass that fails is reported, and the next one comes.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn spawn(self) -> Purging {
        run::spawn(self)
    }

    /// Makes one pass now, whatever the start hold. Holds are honoured.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Database`](crate::ErrorKind::Database) when the pass could not be made. One
    /// handler whose keys cannot be purged is in [`Pass::failures`], and does not keep the others from it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was deleted was old enough. Other nodes wait for a minute before they purge.
    pub async fn pass(&self) -> Result<Pass, Error> {
        self.engine.still_here().await?;
        self.engine.flush_ages().await?;
        self.pass_until(&|| false).await
    }

    /// What a pass would delete, by handler, without deleting it.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Database`](crate::ErrorKind::Database) when the keys could not be counted.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn dry_run(&self) -> Result<Pass, Error> {
        pass::dry_run(&self.engine, self.only.as_deref()).await
    }

    async fn pass_until(&self, is_told_to_stop: &(dyn Fn() -> bool + Send + Sync)) -> Result<Pass, Error> {
        let (batch, pause, only, after_batch) = (self.batch, self.pause, self.only.as_deref(), &*self.after_batch);
        let way = Way { batch, pause, only, after_batch, is_told_to_stop };
        pass::run(&self.engine, &way).await
    }
}

impl<S: Store> std::fmt::Debug for Purger<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Purger")
            .field("interval", &self.interval)
            .field("batch", &self.batch)
            .field("start_hold", &self.start_hold)
            .finish_non_exhaustive()
    }
}
