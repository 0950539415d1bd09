//! What the database says of each handler: for the catalog, for the command line, and for whoever decides on a retention.

use std::time::Duration;

use super::target::{Target, targets};
use crate::engine::Engine;
use crate::error::Error;
use crate::store::{Borrowed, RecordedRow, Store, schema};

/// As many keys of a handler are counted one by one; from there on the number is an estimate.
const COUNTED: i64 = 100_000;

const DAY_SECS: i64 = 86_400;

/// What the database says of one handler's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerFigures {
    /// The handler's name.
    pub handler: String,
    /// Whether the handler is recorded for the application, not in this program, and no node has had it for a day.
    pub is_orphan: bool,
    /// What the purge goes by, without the tolerance for fast clocks: the longest retention that somebody wants.
    pub retention: Duration,
    /// How many keys are in the table.
    pub rows: u64,
    /// Whether [`rows`](Self::rows) is an estimate: beyond 100,000 keys the rate of the oldest 100,000 is taken for all.
    pub rows_are_estimated: bool,
    /// The age of the oldest key; `None` without keys.
    pub oldest_key_age: Option<Duration>,
    /// For how long the oldest overdue key has been overdue; zero when none is.
    pub purge_lag: Duration,
    /// How old the first sight was, at most, when a duplicate came; zero when none was seen that is older than a second.
    pub highest_duplicate_age: Duration,
    /// What a row takes, its part of the indexes included: an estimate from the lengths in the newest 100 rows and from what
    /// was measured on grown tables. `None` without keys.
    pub bytes_per_row: Option<u64>,
    /// How many keys came within the last day, as far as they are still there; beyond 100,000 an estimate from the newest.
    pub keys_last_day: u64,
}

/// A handler that is recorded for the application, is not in this program, and that no node has had for a day.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// The handler's name.
    pub handler: String,
    /// The last retention that was recorded. Its keys are purged by that.
    pub retention: Duration,
    /// How long ago a node with the handler started, or last said that it still runs.
    pub last_seen: Duration,
}

/// What the database says of every handler of the application that keeps keys, orphans included, sorted by name. Five short
/// queries for each, and no more than 100,000 keys are looked at by any of them.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Database`](crate::ErrorKind::Database) when the database could not be asked.
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn figures<S: Store>(engine: &Engine<S>) -> Result<Vec<HandlerFigures>, Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let recorded = S::recorded(&mut conn).await.map_err(schema::connection_error::<S>)?;
    let mut figures = Vec::new();
    for target in targets(engine, &recorded, None) {
        let of_handler = of_handler::<S>(&mut conn, &target, engine.application(), &recorded).await;
        figures.push(of_handler.map_err(schema::connection_error::<S>)?);
    }
    conn.give_back();
    Ok(figures)
}

/// The handlers that are recorded for the application, not in this program, and that no node has had for a day, by name.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Database`](crate::ErrorKind::Database) when the database could not be asked.
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn orphans<S: Store>(engine: &Engine<S>) -> Result<Vec<Orphan>, Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let recorded = S::recorded(&mut conn).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    let orphans = targets(engine, &recorded, None).into_iter().filter(|target| target.is_orphan);
    let orphan = |target: Target| {
        let row = recorded.iter().find(|row| row.application == engine.application() && row.handler == target.handler);
        Orphan {
            handler: target.handler,
            retention: duration(target.retention_secs),
            last_seen: duration(row.map_or(0, |row| row.seen_secs_ago)),
        }
    };
    Ok(orphans.map(orphan).collect())
}

async fn of_handler<S: Store>(
    conn: &mut S::Connection,
    target: &Target,
    application: &str,
    recorded: &[RecordedRow],
) -> sqlx::Result<HandlerFigures> {
    let counted = S::count(conn, &target.handler, COUNTED).await?;
    let lately = S::count_younger(conn, &target.handler, DAY_SECS, COUNTED).await?;
    let bytes_per_row = S::lengths(conn, &target.handler).await?.map(S::row_bytes);
    let row = recorded.iter().find(|row| row.application == application && row.handler == target.handler);
    let oldest = counted.oldest_secs.unwrap_or(0);
    let overdue = oldest.saturating_sub(target.older_than_secs());
    Ok(HandlerFigures {
        handler: target.handler.clone(),
        is_orphan: target.is_orphan,
        retention: duration(target.retention_secs),
        rows: extrapolated(counted.keys, oldest, oldest - counted.youngest_secs.unwrap_or(0)),
        rows_are_estimated: counted.keys >= COUNTED,
        oldest_key_age: counted.oldest_secs.map(duration),
        purge_lag: duration(overdue),
        highest_duplicate_age: duration(row.map_or(0, |row| row.highest_duplicate_age_secs)),
        bytes_per_row: bytes_per_row.and_then(|bytes| u64::try_from(bytes).ok()),
        keys_last_day: extrapolated(lately.keys, DAY_SECS, lately.oldest_secs.unwrap_or(0)),
    })
}

/// The number of all keys of a time, where as many as were counted are those of a part of it.
fn extrapolated(keys: i64, whole_secs: i64, part_secs: i64) -> u64 {
    let counted = u64::try_from(keys).unwrap_or(0);
    if keys < COUNTED {
        return counted;
    }
    let part = u64::try_from(part_secs).unwrap_or(0).max(1);
    let whole = u64::try_from(whole_secs).unwrap_or(0).max(part);
    counted.saturating_mul(whole) / part
}

fn duration(secs: i64) -> Duration {
    Duration::from_secs(u64::try_from(secs).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_counted_came_at_the_same_rate() {
        assert_eq!(extrapolated(7, 1_000, 100), 7);
        // A tenth of the time was looked at, an hour of a day, and no time at all.
        assert_eq!(extrapolated(COUNTED, 1_000, 100), 1_000_000);
        assert_eq!(extrapolated(COUNTED, DAY_SECS, 3_600), 2_400_000);
        assert_eq!(extrapolated(COUNTED, 0, 0), 100_000);
    }
}
