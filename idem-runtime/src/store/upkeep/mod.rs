//! What the purge asks of a database: its SQL, and one implementation for all stores.
//!
//! None of it is on the way of a delivery. Every time is the database's own, and comes out as a number of seconds from
//! its now, so that no two clocks are ever compared.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

use futures_util::future::BoxFuture;
use sqlx::Database;

/// A handler as a node recorded it at its start.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct RecordedRow {
    pub application: String,
    pub handler: String,
    pub key_text: String,
    pub retention_secs: Option<i64>,
    /// How long ago a node with the handler started, or last said that it still runs.
    pub seen_secs_ago: i64,
    /// The longest retention that any node of the application said since the purge last went by a shorter one, and how
    /// long ago a node last said it.
    pub longest_retention_secs: Option<i64>,
    pub longest_seen_secs_ago: i64,
    pub highest_duplicate_age_secs: i64,
}

impl RecordedRow {
    /// Whether the handler, which is not in this program, is not in any other of its application's either: nodes say once an
    /// hour that they have it.
    pub(crate) fn is_orphan(&self) -> bool {
        const A_DAY: i64 = 86_400;
        self.retention_secs.or(self.longest_retention_secs).is_some() && self.seen_secs_ago > A_DAY
    }
}

/// What a node records of a handler.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct RecordedHandler<'a> {
    pub application: &'a str,
    pub handler: &'a str,
    pub key_text: &'a str,
    pub retention_secs: Option<i64>,
    pub semantics: &'static str,
}

/// A time in which nothing may be purged, that is neither over nor released.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct HoldRow {
    pub id: String,
    pub reason: String,
    pub author: String,
    pub expires_in_secs: i64,
}

/// Keys of a handler that were counted, up to a limit, in the order of their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)] // Not public API: the seam between upkeep and store.
pub struct Counted {
    pub keys: i64,
    /// The age of the oldest and of the youngest that was counted.
    pub oldest_secs: Option<i64>,
    pub youngest_secs: Option<i64>,
}

/// The mean lengths of what the newest keys of a handler hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)] // Not public API: the seam between upkeep and store.
pub struct Lengths {
    pub handler: i64,
    pub event_key: i64,
    /// Fingerprint and result together.
    pub rest: i64,
}

/// A key that somebody forgets on purpose.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct ForgetKey<'a> {
    pub handler: &'a str,
    pub event_key: &'a str,
    /// The SHA-256 of the key.
    pub digest: &'a [u8],
    pub author: &'a str,
    pub reason: &'a str,
}

/// A key that somebody has forgotten on purpose.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct ForgottenRow {
    pub author: String,
    pub reason: String,
    pub secs_ago: i64,
}

/// The housekeeping of a store.
#[doc(hidden)] // Not public API: the seam between purge and store.
pub trait Upkeep: Database {
    /// Writes down what the code declares of a handler.
    fn record<'c>(conn: &'c mut Self::Connection, handler: RecordedHandler<'c>) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Everything that was recorded, by any application.
    fn recorded(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<Vec<RecordedRow>>>;

    /// The purge is about to go by this retention, although a longer one was said more than `grace` seconds ago: it is
    /// the longest from now on.
    fn settle_retention<'c>(
        conn: &'c mut Self::Connection,
        application: &'c str,
        handler: &'c str,
        secs: i64,
        grace: i64,
    ) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Raises the highest age at which a duplicate of the handler's came.
    fn raise_duplicate_age<'c>(
        conn: &'c mut Self::Connection,
        application: &'c str,
        handler: &'c str,
        secs: i64,
    ) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Deletes the oldest keys of a handler that are older than so many seconds, at most `limit` of them, in a transaction
    /// of its own, which waits for no lock longer than a few seconds. Says how many.
    fn delete_older<'c>(
        conn: &'c mut Self::Connection,
        handler: &'c str,
        secs: i64,
        limit: i64,
    ) -> BoxFuture<'c, sqlx::Result<u64>>;

    /// How many keys of a handler are older than so many seconds.
    fn count_older<'c>(conn: &'c mut Self::Connection, handler: &'c str, secs: i64)
    -> BoxFuture<'c, sqlx::Result<i64>>;

    /// The age of a handler's oldest key in seconds; `None` without keys.
    fn oldest_secs<'c>(conn: &'c mut Self::Connection, handler: &'c str) -> BoxFuture<'c, sqlx::Result<Option<i64>>>;

    /// Takes or renews the right to purge for so many seconds. Says whether it is the caller's.
    fn take_lease<'c>(conn: &'c mut Self::Connection, holder: &'c str, secs: i64) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// Gives the right to purge back, after a pass that was made.
    fn end_lease<'c>(conn: &'c mut Self::Connection, holder: &'c str) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Gives the right to purge back, after a pass that ended early.
    fn release_lease<'c>(conn: &'c mut Self::Connection, holder: &'c str) -> BoxFuture<'c, sqlx::Result<()>>;

    /// How long the purge has been waiting since a start, in seconds. The first call after a pass begins the wait, and so
    /// does the first one after a time in which no node was there, if it was longer than `gap` seconds.
    fn waiting_secs(conn: &mut Self::Connection, gap: i64) -> BoxFuture<'_, sqlx::Result<i64>>;

    /// The holds that are in force.
    fn holds(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<Vec<HoldRow>>>;

    /// Places a hold for so many seconds.
    fn place_hold<'c>(
        conn: &'c mut Self::Connection,
        id: &'c str,
        reason: &'c str,
        author: &'c str,
        secs: i64,
    ) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Ends a hold early. Says whether it was in force.
    fn release_hold<'c>(
        conn: &'c mut Self::Connection,
        id: &'c str,
        author: &'c str,
    ) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// Deletes a key and writes down who did it, in one transaction. Says whether it was there.
    fn forget<'c>(conn: &'c mut Self::Connection, key: ForgetKey<'c>) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// When a key was forgotten, and by whom, the last time first.
    fn forgotten<'c>(
        conn: &'c mut Self::Connection,
        handler: &'c str,
        digest: &'c [u8],
    ) -> BoxFuture<'c, sqlx::Result<Vec<ForgottenRow>>>;

    /// Counts the keys of a handler from the oldest on, at most `limit` of them.
    fn count<'c>(conn: &'c mut Self::Connection, handler: &'c str, limit: i64) -> BoxFuture<'c, sqlx::Result<Counted>>;

    /// Counts the keys of a handler that are younger than so many seconds, from the youngest on, at most `limit` of them.
    fn count_younger<'c>(
        conn: &'c mut Self::Connection,
        handler: &'c str,
        secs: i64,
        limit: i64,
    ) -> BoxFuture<'c, sqlx::Result<Counted>>;

    /// The mean lengths of the newest keys; `None` without keys.
    fn lengths<'c>(conn: &'c mut Self::Connection, handler: &'c str) -> BoxFuture<'c, sqlx::Result<Option<Lengths>>>;

    /// What a row of these lengths takes, its part of the indexes included, by what was measured on grown tables.
    fn row_bytes(lengths: Lengths) -> i64;
}
