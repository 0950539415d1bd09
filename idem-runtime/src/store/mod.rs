//! The seam between the engine and a database. SQL stands here and nowhere else.
//!
//! One file per store, in the same order: the statements, then one function per method of [`Store`].

mod batch;
mod borrowed;
pub(crate) mod in_place;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
pub(crate) mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
mod upkeep;

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::migrate::{Migrate, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{Database, SqlStr, Transaction};

pub(crate) use batch::Batch;
pub(crate) use borrowed::Borrowed;
pub(crate) use in_place::InPlace;
pub(crate) use queue::{Held, Queue, QueuedRow};
pub(crate) use upkeep::Upkeep;
pub(crate) use upkeep::{ForgetKey, ForgottenRow, HoldRow, RecordedHandler, RecordedRow};

/// Why a transaction was not committed, or is not known to be.
#[derive(Debug)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub enum CommitError {
    /// The transaction is doomed: the database rolls back whatever is said.
    Aborted(sqlx::Error),
    /// The transaction that the key was claimed in is over.
    Escaped(sqlx::Error),
    /// The database refused to commit, and nothing is stored.
    Refused(sqlx::Error),
    /// The answer did not arrive: committed or not, nobody knows yet.
    Lost(sqlx::Error),
}

/// What an error of the database means for the delivery. Decided by codes, never by message text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub enum Fault {
    /// Serialization failure or deadlock: the transaction is rolled back, and running it again may succeed.
    Contention,
    /// A bounded wait for a lock is over.
    LockTimeout,
    /// The connection is gone, or there was none.
    ConnectionLost,
    /// The database or the transaction is read-only.
    ReadOnly,
    /// The library's tables are missing.
    Schema,
    /// Anything else.
    Other,
}

/// The row to insert.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub struct NewKey<'a> {
    pub handler: &'a str,
    pub event_key: &'a str,
    /// Tells this attempt's row from another's.
    pub claim: i64,
    pub fingerprint: Option<&'a [u8]>,
    /// Whether the database's clock is wanted with the answer.
    pub timed: bool,
}

/// What the insert found.
#[derive(Debug)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub enum Claimed {
    /// The key is new. Holds what the database's clock said, if it was asked for.
    New { clock: Option<Clock> },
    /// The key is there already, committed.
    Taken,
}

/// What the database's clock said around a claim, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub struct Clock {
    /// What stands in the row, and what the purge will go by.
    pub claimed_micros: i64,
    /// After the row was in: a claim may have waited in between.
    pub now_micros: i64,
}

/// A committed row.
#[derive(Debug)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub struct KeyRow {
    pub claim: i64,
    pub claimed_micros: i64,
    pub now_micros: i64,
    pub fingerprint: Option<Vec<u8>>,
    pub result: Option<Vec<u8>>,
}

/// What the database says of itself, for a diagnosis.
#[derive(Debug)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub struct Health {
    pub version: String,
    pub now_micros: i64,
    /// The isolation level of a transaction that asks for none, in lower case with spaces: `read committed`.
    pub isolation: String,
    /// The indexes of `idem_key`: whether they are unique, and their columns in order, with commas between them.
    pub indexes: Vec<(bool, String)>,
    /// Whether the server cleans up behind deleted rows of `idem_key` by itself; `None` where every server does.
    pub autovacuum: Option<bool>,
}

/// The isolation level of a delivery's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what is committed when it starts.
    ReadCommitted,
    /// The transaction sees what was committed when it first read.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

/// How long a delivery waits for another delivery of the same event, unless it is configured. SQLite's own default for
/// `busy_timeout` in sqlx.
pub(crate) const CLAIM_WAIT: Duration = Duration::from_secs(5);

/// What the engine was configured to do, as far as it concerns SQL.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub struct Settings {
    /// `None` leaves it to the session where that has a bound, and is [`CLAIM_WAIT`] where not.
    pub claim_wait: Option<Duration>,
    pub isolation: Option<Isolation>,
    pub statement_cache: bool,
}

/// The statements that depend on the settings, put together once at start.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between engine and store.
pub struct Statements {
    pub begin: SqlStr,
    /// For a transaction without a claim, which bounds no wait.
    pub begin_unkeyed: SqlStr,
    pub claim: SqlStr,
    pub claim_timed: SqlStr,
    /// For many keys; on MySQL what stands before their rows.
    pub claim_all: SqlStr,
    /// Whether statements are prepared under a name that the session keeps.
    pub persistent: bool,
}

mod sealed {
    #[allow(unreachable_pub, reason = "seals a public trait")]
    pub trait Sealed {}
}

/// A database that keys can be kept in: `Sqlite`, `Postgres` or `MySql` of sqlx, by the crate's features.
///
/// Sealed: its methods are the engine's own and change without notice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no store of idem",
    label = "not a database that keys can be kept in",
    note = "the stores are features of idem-runtime: `sqlite` (on by default), `postgres`, `mysql`"
)]
pub trait Store: Upkeep + Queue + Batch + InPlace + Database<Connection: Migrate> + sealed::Sealed {
    /// Asks the database what the statements need to know, and puts them together.
    #[doc(hidden)]
    fn statements<'a>(
        conn: &'a mut Self::Connection,
        settings: &'a Settings,
    ) -> BoxFuture<'a, sqlx::Result<Statements>>;

    /// Opens a transaction that can be recognised at its commit. One round trip.
    #[doc(hidden)]
    fn begin<'c>(conn: &'c mut Self::Connection, begin: &SqlStr) -> BoxFuture<'c, sqlx::Result<Transaction<'c, Self>>>;

    /// Inserts the key, waiting for another transaction that is inserting it. One round trip. The transaction stays
    /// usable when the key is taken.
    #[doc(hidden)]
    fn claim<'c>(
        conn: &'c mut Self::Connection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Claimed>>;

    /// Reads a committed key. One round trip.
    #[doc(hidden)]
    fn find<'c>(
        conn: &'c mut Self::Connection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Option<KeyRow>>>;

    /// Writes the handler's result beside the key that this attempt inserted, which must still be there.
    #[doc(hidden)]
    fn store_result<'c>(
        conn: &'c mut Self::Connection,
        statements: &'c Statements,
        new: NewKey<'c>,
        result: &'c [u8],
    ) -> BoxFuture<'c, Result<(), CommitError>>;

    /// Proves that the transaction is still the one that [`begin`](Self::begin) opened, and commits it.
    #[doc(hidden)]
    fn commit<'c>(tx: Transaction<'c, Self>) -> BoxFuture<'c, Result<(), CommitError>>;

    /// Rolls back, whatever the handler did to the transaction. Says whether the connection is clean.
    #[doc(hidden)]
    fn rollback<'c>(tx: Transaction<'c, Self>) -> BoxFuture<'c, bool>;

    /// Takes back a connection whose delivery was cut off in the middle.
    #[doc(hidden)]
    fn abandon(conn: PoolConnection<Self>);

    /// What an error means.
    #[doc(hidden)]
    fn fault(error: &sqlx::Error) -> Fault;

    /// The migrations of this store.
    #[doc(hidden)]
    fn migrator() -> Migrator;

    /// Keeps other nodes from migrating at the same time, or lets them in again. Nothing by default: where sqlx's own lock
    /// works, the [`migrator`](Self::migrator) takes it.
    #[doc(hidden)]
    fn lock_migrations(_: &mut Self::Connection, _lock: bool) -> BoxFuture<'_, sqlx::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The newest migration that was applied; `None` without a version table.
    #[doc(hidden)]
    fn schema_version(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<Option<i64>>>;

    /// Asks the database about itself, once the tables are there.
    #[doc(hidden)]
    fn health(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<Health>>;
}

/// The faults that are no answer of a database.
fn driver_fault(error: &sqlx::Error) -> Fault {
    use sqlx::Error as E;
    match error {
        E::Io(_)
        | E::Tls(_)
        | E::Protocol(_)
        | E::PoolTimedOut
        | E::PoolClosed
        | E::WorkerCrashed
        | E::Configuration(_) => Fault::ConnectionLost,
        _ => Fault::Other,
    }
}

/// Reads the columns that every store's look-up names alike.
fn key_row<'r, R>(row: &'r R) -> sqlx::Result<KeyRow>
where
    R: sqlx::Row,
    &'static str: sqlx::ColumnIndex<R>,
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    Vec<u8>: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    Ok(KeyRow {
        claim: row.try_get("claim")?,
        claimed_micros: row.try_get("claimed_micros")?,
        now_micros: row.try_get("now_micros")?,
        fingerprint: row.try_get("fingerprint")?,
        result: row.try_get("result")?,
    })
}

/// Bytes as SQL and JSON can carry them.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Only a transaction that is not ours any more can have lost the key that it was opened with.
fn exactly_one(rows: u64) -> Result<(), CommitError> {
    if rows == 1 { Ok(()) } else { Err(CommitError::Escaped(sqlx::Error::RowNotFound)) }
}
