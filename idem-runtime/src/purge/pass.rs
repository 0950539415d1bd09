//! One pass: every handler's keys that are older than their retention, in batches.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::hold::Hold;
use super::pace::Pace;
use super::target::{GRACE_SECS, Shortened, Target, targets, with_tolerance};
use crate::clock::monotonic;
use crate::engine::Engine;
use crate::error::Error;
use crate::store::{Borrowed, Fault, Store, schema};
use crate::telemetry;

/// How long the right to purge lasts without being renewed. A node that dies keeps the others from purging so long.
const LEASE_SECS: i64 = 60;

/// When it is renewed.
const RENEW_AFTER: Duration = Duration::from_secs(15);

/// How long a batch may take. A database that does not answer at all must not end the purge in silence. With the time
/// after which the lease is renewed it stays below the lease.
const LONGEST_BATCH: Duration = Duration::from_secs(40);

/// What a pass of the purge came to.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Pass {
    /// Why nothing was purged, or not everything; `None` for a pass that went to its end.
    pub stopped: Option<Stopped>,
    /// The handlers whose keys were looked at, sorted by name.
    pub handlers: Vec<Purged>,
    /// The handlers whose keys could not be purged; they are left for the next pass.
    pub failures: Vec<(String, Error)>,
}

/// Why a pass ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// A hold is in force.
    Held(Hold),
    /// Another node is purging.
    Elsewhere,
    /// The purger was told to stop.
    Told,
}

/// What became of one handler's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// The handler's name.
    pub handler: String,
    /// How many keys were deleted; in a dry run, how many would be.
    pub purged: u64,
    /// How old a key must be to go, in whole seconds: the retention, and the tolerance for fast clocks.
    pub older_than: Duration,
    /// Whether the handler is recorded for the application, not in this program, and no node has had it for a day.
    pub is_orphan: bool,
    /// What a retention that is shorter than before gives away.
    pub exposed: Option<Exposed>,
}

/// Keys that were safe under the retention from before, and are not under the one in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exposed {
    /// The longest retention that a node said before.
    pub was: Duration,
    /// The one that holds now.
    pub is: Duration,
    /// How many keys are older than the one and younger than the other.
    pub keys: u64,
    /// When the purge goes by the shorter one: a day after a node last said the longer one. Zero if that is over.
    pub goes_in: Duration,
}

impl Pass {
    /// How many keys were deleted in all.
    #[must_use]
    pub fn purged(&self) -> u64 {
        self.handlers.iter().map(|handler| handler.purged).sum()
    }

    /// The handlers that are not in this program any more.
    pub fn orphans(&self) -> impl Iterator<Item = &Purged> {
        self.handlers.iter().filter(|handler| handler.is_orphan)
    }

    /// The hold that kept the pass from purging, if one did.
    #[must_use]
    pub fn held(&self) -> Option<&Hold> {
        match &self.stopped {
            Some(Stopped::Held(hold)) => Some(hold),
            _ => None,
        }
    }
}

/// How a pass goes about it.
pub(super) struct Way<'a> {
    pub(super) batch: u32,
    pub(super) pause: Duration,
    pub(super) only: Option<&'a str>,
    pub(super) after_batch: &'a (dyn Fn(&str, u64) + Send + Sync),
    pub(super) is_told_to_stop: &'a (dyn Fn() -> bool + Send + Sync),
}

/// One pass, if it is this node's turn.
pub(super) async fn run<S: Store>(engine: &Engine<S>, way: &Way<'_>) -> Result<Pass, Error> {
    let pass = async {
        let started = monotonic();
        let mut right = Right { engine, holder: random_name(), taken: None };
        let mut pass = Pass::default();
        if let Err(error) = run_untold(engine, way, &mut right, &mut pass).await {
            // Else the next pass waits for the lease to end.
            drop(right.end(false).await);
            return Err(error);
        }
        right.end(pass.stopped.is_none() && way.only.is_none()).await?;
        telemetry::pass_ended(&pass, monotonic().saturating_duration_since(started));
        Ok(pass)
    };
    pass.instrument(telemetry::pass::<S>()).await
}

async fn run_untold<S: Store>(
    engine: &Engine<S>,
    way: &Way<'_>,
    right: &mut Right<'_, S>,
    pass: &mut Pass,
) -> Result<(), Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    pass.stopped = right.check(&mut conn).await?;
    if pass.stopped.is_some() {
        conn.give_back();
        return Ok(());
    }
    let recorded = S::recorded(&mut conn).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    for target in targets(engine, &recorded, way.only) {
        let mut purged = Purged::new(&target);
        purged.exposed = exposed(engine, &target).await?;
        if let Some(exposed) = &purged.exposed {
            telemetry::exposed(&target.handler, exposed);
        }
        purge(way, right, pass, &target, &mut purged).await?;
        let is_done = pass.stopped.is_none() && pass.failures.iter().all(|(handler, _)| *handler != target.handler);
        if let Some(lag) = if is_done { Some(Duration::ZERO) } else { lag(engine, &target).await } {
            telemetry::lag(&target.handler, lag);
        }
        if is_done && target.shortened.is_some_and(|shortened| shortened.goes_in_secs == 0) {
            settle(engine, &target).await?;
        }
        pass.handlers.push(purged);
        if pass.stopped.is_some() {
            break;
        }
    }
    Ok(())
}

/// One handler's keys, until a batch is not full.
async fn purge<S: Store>(
    way: &Way<'_>,
    right: &mut Right<'_, S>,
    pass: &mut Pass,
    target: &Target,
    purged: &mut Purged,
) -> Result<(), Error> {
    let mut pace = Pace::new(way.batch, way.pause);
    loop {
        if (way.is_told_to_stop)() {
            pass.stopped = Some(Stopped::Told);
            return Ok(());
        }
        let (batch, started) = (pace.batch(), monotonic());
        let pause = match right.batch(target, batch).await? {
            Ok(Batch::Stopped(stopped)) => {
                pass.stopped = Some(stopped);
                return Ok(());
            }
            Ok(Batch::Deleted(deleted)) => {
                purged.purged += deleted;
                telemetry::batch_ended(&target.handler, deleted);
                (way.after_batch)(&target.handler, deleted);
                if deleted < u64::from(batch) {
                    return Ok(());
                }
                pace.after_batch(monotonic().saturating_duration_since(started))
            }
            Err(error) => match (S::fault(&error), pace.after_setback()) {
                (Fault::ConnectionLost, _) => return Err(schema::connection_error::<S>(error)),
                (Fault::Contention | Fault::LockTimeout, Some(pause)) => pause,
                _ => {
                    pass.failures.push((target.handler.clone(), schema::connection_error::<S>(error)));
                    return Ok(());
                }
            },
        };
        tokio::time::sleep(pause).await;
    }
}

/// What a pass would delete, without deleting it, without the lease and without regard to holds.
pub(super) async fn dry_run<S: Store>(engine: &Engine<S>, only: Option<&str>) -> Result<Pass, Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let recorded = S::recorded(&mut conn).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    let mut pass = Pass::default();
    for target in targets(engine, &recorded, only) {
        let mut conn = Borrowed::from(engine.pool()).await?;
        let count = S::count_older(&mut conn, &target.handler, target.older_than_secs()).await;
        let purged = u64::try_from(count.map_err(schema::connection_error::<S>)?).unwrap_or(0);
        conn.give_back();
        let exposed = exposed(engine, &target).await?;
        pass.handlers.push(Purged { purged, exposed, ..Purged::new(&target) });
    }
    Ok(pass)
}

/// Counts what a shorter retention gives away, before it goes.
async fn exposed<S: Store>(engine: &Engine<S>, target: &Target) -> Result<Option<Exposed>, Error> {
    let Some(Shortened { was_secs, is_secs, goes_in_secs }) = target.shortened else {
        return Ok(None);
    };
    let mut conn = Borrowed::from(engine.pool()).await?;
    let failed = schema::connection_error::<S>;
    let older = S::count_older(&mut conn, &target.handler, with_tolerance(is_secs)).await.map_err(failed)?;
    let safe = S::count_older(&mut conn, &target.handler, with_tolerance(was_secs)).await.map_err(failed)?;
    conn.give_back();
    let keys = u64::try_from(older.saturating_sub(safe)).unwrap_or(0);
    Ok(Some(Exposed { was: duration(was_secs), is: duration(is_secs), keys, goes_in: duration(goes_in_secs) }))
}

/// For how long the oldest key that should be gone has been there; `None` where nobody can say.
async fn lag<S: Store>(engine: &Engine<S>, target: &Target) -> Option<Duration> {
    let mut conn = Borrowed::from(engine.pool()).await.ok()?;
    let oldest = S::oldest_secs(&mut conn, &target.handler).await.ok()?;
    conn.give_back();
    Some(duration(oldest.unwrap_or(0).saturating_sub(target.older_than_secs())))
}

/// The shorter retention is the one from now on, and nobody is warned of it again.
async fn settle<S: Store>(engine: &Engine<S>, target: &Target) -> Result<(), Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let settled =
        S::settle_retention(&mut conn, engine.application(), &target.handler, target.retention_secs, GRACE_SECS).await;
    settled.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    Ok(())
}

/// The right to purge: a row that one node at a time holds, and that no hold forbids.
struct Right<'a, S: Store> {
    engine: &'a Engine<S>,
    holder: String,
    /// When it was asked for last, if it was given: it may have begun long before the answer came.
    taken: Option<Instant>,
}

enum Batch {
    Deleted(u64),
    Stopped(Stopped),
}

impl<S: Store> Right<'_, S> {
    /// Takes or renews it. Says why not, if this node may not purge now.
    async fn check(&mut self, conn: &mut S::Connection) -> Result<Option<Stopped>, Error> {
        self.ask(conn).await.map_err(schema::connection_error::<S>)
    }

    async fn ask(&mut self, conn: &mut S::Connection) -> sqlx::Result<Option<Stopped>> {
        let holds = S::holds(conn).await?;
        telemetry::holds(holds.len());
        if let Some(hold) = holds.into_iter().next() {
            return Ok(Some(Stopped::Held(hold.into())));
        }
        if self.taken.is_some_and(|taken| monotonic().saturating_duration_since(taken) < RENEW_AFTER) {
            return Ok(None);
        }
        let asked = monotonic();
        if S::take_lease(conn, &self.holder, LEASE_SECS).await? {
            self.taken = Some(asked);
            return Ok(None);
        }
        self.taken = None;
        Ok(Some(Stopped::Elsewhere))
    }

    /// One batch, on a connection that is given back before the pause: whoever delivers on the same pool gets its turn.
    async fn batch(&mut self, target: &Target, limit: u32) -> Result<sqlx::Result<Batch>, Error> {
        let mut conn = Borrowed::<S>::from(self.engine.pool()).await?;
        let batch = async {
            if let Some(stopped) = self.ask(&mut conn).await? {
                return Ok(Batch::Stopped(stopped));
            }
            let deleted = S::delete_older(&mut conn, &target.handler, target.older_than_secs(), limit.into()).await?;
            Ok(Batch::Deleted(deleted))
        };
        let ended = timeout(LONGEST_BATCH, batch).await.unwrap_or_else(|_| {
            let text = format!("the database gave no answer within {LONGEST_BATCH:?}");
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text)))
        });
        if ended.is_ok() {
            conn.give_back();
        }
        Ok(ended)
    }

    /// Gives it back.
    async fn end(self, is_complete: bool) -> Result<(), Error> {
        if self.taken.is_none() {
            return Ok(());
        }
        let mut conn = Borrowed::<S>::from(self.engine.pool()).await?;
        let ended = if is_complete {
            S::end_lease(&mut conn, &self.holder).await
        } else {
            S::release_lease(&mut conn, &self.holder).await
        };
        ended.map_err(schema::connection_error::<S>)?;
        conn.give_back();
        Ok(())
    }
}

pub(super) fn random_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

fn duration(secs: i64) -> Duration {
    Duration::from_secs(u64::try_from(secs).unwrap_or(0))
}

impl Purged {
    fn new(target: &Target) -> Self {
        let older_than = duration(target.older_than_secs());
        Self { handler: target.handler.clone(), purged: 0, older_than, is_orphan: target.is_orphan, exposed: None }
    }
}
