//! Times in which nothing may be purged, for the incident in which somebody replays last week.

use std::time::Duration;

use super::pass::random_name;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::store::{Borrowed, HoldRow, Store, schema};

/// Nothing may be purged until it expires or is released. Stored in the database, and honoured by every node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hold {
    /// Names it, for [`release_hold`].
    pub id: String,
    /// Why it was placed.
    pub reason: String,
    /// Who placed it.
    pub author: String,
    /// How long it still holds, by the database's clock, in whole seconds.
    pub expires_in: Duration,
}

impl From<HoldRow> for Hold {
    fn from(row: HoldRow) -> Self {
        let expires_in = Duration::from_secs(u64::try_from(row.expires_in_secs).unwrap_or(0));
        Self { id: row.id, reason: row.reason, author: row.author, expires_in }
    }
}

/// Keeps every node from purging for so long, from now on. A pass that runs ends after its batch.
///
/// # Errors
///
/// [`ErrorKind::Registry`] without a reason, an author, or a time of at least a second;
/// [`Unavailable`](ErrorKind::Unavailable) or [`Database`](ErrorKind::Database) when it could not be stored.
///
/// # Cancel safety
///
/// Dropped before its end, the hold is placed or it is not; [`holds`] tells.
pub async fn place_hold<S: Store>(
    engine: &Engine<S>,
    reason: &str,
    author: &str,
    length: Duration,
) -> Result<Hold, Error> {
    if reason.trim().is_empty() || author.trim().is_empty() || length < Duration::from_secs(1) {
        let detail = "a hold has a reason, an author and a length of at least a second; none was placed";
        return Err(Error::new(ErrorKind::Registry).detail(detail));
    }
    let id = random_name();
    let secs = i64::try_from(length.as_secs()).unwrap_or(i64::MAX).min(100 * 366 * 86_400);
    let mut conn = Borrowed::from(engine.pool()).await?;
    S::place_hold(&mut conn, &id, reason, author, secs).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    Ok(Hold { id, reason: reason.to_owned(), author: author.to_owned(), expires_in: length })
}

/// Ends a hold before it expires. Says whether it was in force.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable) or [`Database`](ErrorKind::Database) when it could not be stored.
///
/// # Cancel safety
///
/// Dropped before its end, the hold is released or it is not; [`holds`] tells.
pub async fn release_hold<S: Store>(engine: &Engine<S>, id: &str, author: &str) -> Result<bool, Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let was_in_force = S::release_hold(&mut conn, id, author).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    Ok(was_in_force)
}

/// The holds that are in force, the oldest first.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable) or [`Database`](ErrorKind::Database) when they could not be read.
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn holds<S: Store>(engine: &Engine<S>) -> Result<Vec<Hold>, Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let rows = S::holds(&mut conn).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    Ok(rows.into_iter().map(Hold::from).collect())
}
