//! One pass: every handler's keys that are older than their retention, in batches.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use tracing::Instrument;

use super::hold::{Hold, connection};
use super::pace::Pace;
use crate::clock::monotonic;
use crate::engine::{CLOCK_TOLERANCE, Engine, seconds};
use crate::error::Error;
use crate::store::{Fault, RecordedRow, Store, schema};
use crate::telemetry;

/// How long the right to purge lasts without being renewed. A node that dies keeps the others from purging so long.
const LEASE_SECS: i64 = 60;

/// When it is renewed.
const RENEW_AFTER: Duration = Duration::from_secs(15);

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
}

/// How a pass goes about it.
pub(super) struct Way<'a> {
    pub(super) batch: u32,
    pub(super) pause: Duration,
    pub(super) only: Option<&'a str>,
    pub(super) after_batch: &'a (dyn Fn(&str, u64) + Send + Sync),
    pub(super) is_told_to_stop: &'a (dyn Fn() -> bool + Send + Sync),
}

/// Whose keys go, and when.
struct Target {
    handler: String,
    older_than_secs: i64,
    is_orphan: bool,
}

/// One pass, if it is this node's turn.
pub(super) async fn run<S: Store>(engine: &Engine<S>, way: &Way<'_>) -> Result<Pass, Error> {
    let pass = run_untold(engine, way).instrument(telemetry::pass::<S>()).await?;
    telemetry::pass_ended(&pass);
    Ok(pass)
}

async fn run_untold<S: Store>(engine: &Engine<S>, way: &Way<'_>) -> Result<Pass, Error> {
    let mut conn = connection(engine).await?;
    let holder = format!("{:016x}", RandomState::new().build_hasher().finish());
    let mut pass = Pass::default();
    if let Some(stopped) = may_not(&mut conn, &holder).await.map_err(|error| schema::connection_error::<S>(error))? {
        pass.stopped = Some(stopped);
        return Ok(pass);
    }
    let recorded = S::recorded(&mut conn).await.map_err(|error| schema::connection_error::<S>(error))?;
    speak_of_shortened(engine, &mut conn).await.map_err(|error| schema::connection_error::<S>(error))?;
    let mut renewed = monotonic();
    for target in targets(engine, &recorded, way.only) {
        let mut purged = Purged::new(&target);
        let mut pace = Pace::new(way.batch, way.pause);
        loop {
            if (way.is_told_to_stop)() {
                pass.stopped = Some(Stopped::Told);
            } else if monotonic().saturating_duration_since(renewed) > RENEW_AFTER {
                let stopped = may_not(&mut conn, &holder).await;
                pass.stopped = stopped.map_err(|error| schema::connection_error::<S>(error))?;
                renewed = monotonic();
            }
            if pass.stopped.is_some() {
                break;
            }
            let (batch, started) = (pace.batch(), monotonic());
            let deleted = S::delete_older(&mut conn, &target.handler, target.older_than_secs, batch.into()).await;
            let pause = match deleted {
                Ok(deleted) => {
                    purged.purged += deleted;
                    (way.after_batch)(&target.handler, deleted);
                    if deleted < u64::from(batch) {
                        break;
                    }
                    pace.after_batch(monotonic().saturating_duration_since(started))
                }
                Err(error) => match (S::fault(&error), pace.after_setback()) {
                    (Fault::ConnectionLost, _) => return Err(schema::connection_error::<S>(error)),
                    (Fault::Contention | Fault::LockTimeout, Some(pause)) => pause,
                    _ => {
                        pass.failures.push((target.handler.clone(), schema::connection_error::<S>(error)));
                        break;
                    }
                },
            };
            tokio::time::sleep(pause).await;
        }
        pass.handlers.push(purged);
        if pass.stopped.is_some() {
            break;
        }
    }
    let ended = match pass.stopped {
        None if way.only.is_none() => S::end_lease(&mut conn, &holder).await,
        _ => S::take_lease(&mut conn, &holder, 0).await.map(drop),
    };
    ended.map_err(|error| schema::connection_error::<S>(error))?;
    Ok(pass)
}

/// What a pass would delete, without deleting it, without the lease and without regard to holds.
pub(super) async fn dry_run<S: Store>(engine: &Engine<S>, only: Option<&str>) -> Result<Pass, Error> {
    let mut conn = connection(engine).await?;
    let failed = |error| schema::connection_error::<S>(error);
    let recorded = S::recorded(&mut conn).await.map_err(failed)?;
    let mut pass = Pass::default();
    for target in targets(engine, &recorded, only) {
        let count = S::count_older(&mut conn, &target.handler, target.older_than_secs).await.map_err(failed)?;
        pass.handlers.push(Purged { purged: u64::try_from(count).unwrap_or(0), ..Purged::new(&target) });
    }
    Ok(pass)
}

/// Why this node may not purge now.
async fn may_not<S: Store>(conn: &mut PoolConnection<S>, holder: &str) -> sqlx::Result<Option<Stopped>> {
    if let Some(hold) = S::holds(conn).await?.into_iter().next() {
        return Ok(Some(Stopped::Held(hold.into())));
    }
    let is_ours = S::take_lease(conn, holder, LEASE_SECS).await?;
    Ok((!is_ours).then_some(Stopped::Elsewhere))
}

/// Says how many keys a shorter retention gives away, before they go.
async fn speak_of_shortened<S: Store>(engine: &Engine<S>, conn: &mut PoolConnection<S>) -> sqlx::Result<()> {
    for shortened in engine.shortened() {
        let Some(retention) = engine.registry().get(shortened.handler).and_then(|meta| meta.retention) else {
            continue;
        };
        let (is, was) = (with_tolerance(seconds(retention)), with_tolerance(shortened.was_secs));
        let exposed =
            S::count_older(conn, shortened.handler, is).await? - S::count_older(conn, shortened.handler, was).await?;
        if exposed > 0 {
            telemetry::exposed(shortened.handler, shortened.was_secs, seconds(retention), exposed);
        }
    }
    Ok(())
}

/// Every handler of the application: those of this program, and those that a node recorded once. A key is kept as long as
/// anybody who is known wants it: this program, the node that started last (another release, perhaps, with a longer
/// retention), or another application that has a handler of the same name.
fn targets<S: Store>(engine: &Engine<S>, recorded: &[RecordedRow], only: Option<&str>) -> Vec<Target> {
    let mut targets: BTreeMap<&str, Target> = BTreeMap::new();
    for meta in engine.registry().handlers() {
        if let Some(retention) = meta.retention {
            let older_than_secs = with_tolerance(seconds(retention));
            let target = Target { handler: meta.name.to_owned(), older_than_secs, is_orphan: false };
            targets.insert(meta.name, target);
        }
    }
    for row in recorded.iter().filter(|row| row.application == engine.application()) {
        if let Some(secs) = row.retention_secs.filter(|_| engine.registry().get(&row.handler).is_none()) {
            let older_than_secs = with_tolerance(secs);
            let target = Target { handler: row.handler.clone(), older_than_secs, is_orphan: row.is_orphan() };
            targets.insert(&row.handler, target);
        }
    }
    for row in recorded {
        if let (Some(target), Some(secs)) = (targets.get_mut(row.handler.as_str()), row.retention_secs) {
            target.older_than_secs = target.older_than_secs.max(with_tolerance(secs));
        }
    }
    targets.into_values().filter(|target| only.is_none_or(|only| only == target.handler)).collect()
}

/// Events may be dated ahead of the database's clock by so much, so keys are kept as much longer.
fn with_tolerance(secs: i64) -> i64 {
    secs.saturating_add(i64::try_from(CLOCK_TOLERANCE.as_secs()).unwrap_or(0))
}

impl Purged {
    fn new(target: &Target) -> Self {
        let older_than = Duration::from_secs(u64::try_from(target.older_than_secs).unwrap_or(0));
        Self { handler: target.handler.clone(), purged: 0, older_than, is_orphan: target.is_orphan }
    }
}
