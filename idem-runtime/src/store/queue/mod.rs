//! What a queue asks of a database: its SQL, and one implementation for all stores.
//!
//! Times are the database's own, and come in and out as milliseconds from its now.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

use futures_util::future::BoxFuture;
use sqlx::Database;

/// A message that was taken, or that waits for a human.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between queue and store.
pub struct QueuedRow {
    pub id: i64,
    pub attempts: i64,
    pub body: Vec<u8>,
    pub headers: Option<String>,
    /// Why it was dead-lettered, and how long ago; of those that wait for a human.
    pub dead_reason: Option<String>,
    pub dead_millis_ago: Option<i64>,
}

/// What a message that was taken is settled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)] // Not public API: the seam between queue and store.
pub struct Held {
    pub id: i64,
    /// Tells this taking from an earlier one.
    pub holder: i64,
}

/// The messages of one database. `keep` says whether statements are prepared once per connection, under a name.
///
/// What needs the message to be held still says whether it was.
#[doc(hidden)] // Not public API: the seam between queue and store.
pub trait Queue: Database {
    fn enqueue<'c>(
        conn: &'c mut Self::Connection,
        queue: &'c str,
        headers: Option<&'c str>,
        body: &'c [u8],
        keep: bool,
    ) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Takes the next messages, oldest first, and hides them for so long.
    fn take<'c>(
        conn: &'c mut Self::Connection,
        queue: &'c str,
        holder: i64,
        lease_millis: i64,
        limit: i64,
        keep: bool,
    ) -> BoxFuture<'c, sqlx::Result<Vec<QueuedRow>>>;

    fn remove(conn: &mut Self::Connection, held: Held, keep: bool) -> BoxFuture<'_, sqlx::Result<bool>>;

    /// Removes many in one statement, and names those that somebody else holds by now.
    fn remove_all<'c>(conn: &'c mut Self::Connection, held: &'c [Held]) -> BoxFuture<'c, sqlx::Result<Vec<i64>>>;

    /// Shows it again after so long; as if it had not been taken, where that does not count.
    fn put_back(
        conn: &mut Self::Connection,
        held: Held,
        after_millis: i64,
        counts: bool,
        keep: bool,
    ) -> BoxFuture<'_, sqlx::Result<bool>>;

    fn hide_for(conn: &mut Self::Connection, held: Held, millis: i64, keep: bool) -> BoxFuture<'_, sqlx::Result<bool>>;

    fn bury<'c>(
        conn: &'c mut Self::Connection,
        held: Held,
        reason: &'c str,
        keep: bool,
    ) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// How many messages are not settled, counted up to a limit, and the age of the oldest.
    fn unsettled<'c>(
        conn: &'c mut Self::Connection,
        queue: &'c str,
        limit: i64,
    ) -> BoxFuture<'c, sqlx::Result<(i64, Option<i64>)>>;

    fn buried<'c>(
        conn: &'c mut Self::Connection,
        queue: &'c str,
        limit: i64,
    ) -> BoxFuture<'c, sqlx::Result<Vec<QueuedRow>>>;

    /// Shows a message again that waited for a human, as if it were new.
    fn exhume<'c>(conn: &'c mut Self::Connection, queue: &'c str, id: i64) -> BoxFuture<'c, sqlx::Result<bool>>;
}
