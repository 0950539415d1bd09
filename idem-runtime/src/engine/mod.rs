//! The engine: begin, claim, effect, prove, commit.
//!
//! `deliver.rs` is the algorithm, and the file to read first.

mod ages;
mod at_most_once;
mod batch;
mod body;
mod codec;
mod deliver;
mod lease;
#[cfg(feature = "axum")]
mod lend;
mod probe;
mod record;
mod setback;
mod slice;
mod unkeyed;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sqlx::Pool;

use crate::error::Error;
use crate::handler::{Handled, Handler, HandlerMeta};
use crate::registry::Registry;
use crate::store::{Borrowed, CLAIM_WAIT, Isolation, Settings, Statements, Store, schema};
use crate::tx::TxParam;

use lease::Connections;

pub use at_most_once::run_at_most_once;
pub(crate) use body::panic_text;
pub use body::{Attempt, Plan, Prepared, prepare, run};
#[cfg(feature = "axum")]
pub(crate) use body::{Body, Verdict};
pub use codec::{Codec, Forget, Remember};
pub(crate) use deliver::Ended;
#[cfg(feature = "axum")]
pub(crate) use lend::Lent;
pub use probe::{Cause, CloneProbe, Owned, ViaAsRef, ViaClone, ViaError, ViaMove, ViaNone};
pub(crate) use record::seconds;
pub(crate) use setback::{CLOCK_TOLERANCE, Stop, pause};
pub use slice::{SliceReturned, slice};

/// A wait holds a connection, so that a longer one is a mistake.
const LONGEST_CLAIM_WAIT: Duration = Duration::from_secs(3_600);

/// The application of whoever shares the database with nobody.
const DEFAULT_APPLICATION: &str = "default";

/// How often a transaction is run before its serialization failures and deadlocks are reported.
const MAX_RUNS: u32 = 5;

/// Applies events once, on one database. Cheap to clone.
///
/// Every handler is called with it: `handler(&engine, &msg).await`.
///
/// # Example
///
/// ```standalone_crate
/// use idem_runtime::{Engine, Outcome, idempotent};
/// use sqlx::{Sqlite, SqlitePool, Transaction};
///
/// struct Paid {
///     order_id: String,
///     cents: i64,
/// }
///
/// #[idempotent(key = "msg.order_id", retention = "7d")]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     sqlx::query("INSERT INTO credit VALUES (?)").bind(msg.cents).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # sqlx::query("CREATE TABLE credit (cents INTEGER)").execute(&pool).await?;
/// idem_runtime::migrate(&pool).await?;
/// let engine = Engine::start(pool).await?;
///
/// let paid = Paid { order_id: "ord_1".into(), cents: 500 };
/// assert_eq!(credit(&engine, &paid).await?, Outcome::Applied(()));
/// assert!(credit(&engine, &paid).await?.is_duplicate());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Engine<S: Store> {
    inner: Arc<Inner<S>>,
}

struct Inner<S: Store> {
    connections: Connections<S>,
    registry: Registry,
    /// What the deliveries of each handler tell the next ones, and the purge.
    seen: HashMap<&'static str, SeenLately>,
    application: String,
    start: Start,
    statements: Statements,
    claim_wait: Duration,
    max_runs: u32,
    /// Numbers the attempts, from a random start: another process's numbers are elsewhere.
    attempts: AtomicU64,
}

#[derive(Default)]
struct SeenLately {
    /// Whether the last delivery was a duplicate.
    duplicate: AtomicBool,
    /// The highest age of a duplicate, in seconds.
    highest_age: AtomicU64,
    /// As much of it as is written down.
    written_age: AtomicU64,
}

/// The engine that belongs to a handler's transaction type.
pub type EngineFor<Tx> = Engine<<Tx as TxParam>::Store>;

impl<S: Store> Engine<S> {
    /// Starts an engine with the defaults; the same as `Engine::builder(pool).start()`.
    ///
    /// # Errors
    ///
    /// As for [`EngineBuilder::start`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: starting only reads.
    pub async fn start(pool: Pool<S>) -> Result<Self, Error> {
        Self::builder(pool).start().await
    }

    /// Configures an engine.
    pub fn builder(pool: Pool<S>) -> EngineBuilder<S> {
        let application = DEFAULT_APPLICATION.to_owned();
        EngineBuilder {
            pool,
            application,
            claim_wait: None,
            max_runs: MAX_RUNS,
            isolation: None,
            statement_cache: true,
        }
    }

    /// Applies the message's event once, through a handler that is named as a type.
    ///
    /// # Errors
    ///
    /// As [`Failure`](crate::Failure) says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls back: no key, no effect. Dropped while the commit is under way, both are stored or
    /// neither is. The connection is closed or cleaned, never reused as it is.
    ///
    /// An at-most-once handler has nothing that rolls back: dropped after it began, the rest of its effect is lost.
    pub async fn handle<H: Handler<S>>(&self, message: &H::Message, state: &H::State) -> Handled<H::Returned> {
        H::call(self, message, state).await
    }

    /// The handlers that are linked into the program.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The pool that the engine takes its connections from.
    #[must_use]
    pub fn pool(&self) -> &Pool<S> {
        self.inner.connections.pool()
    }
}

impl<S: Store> Engine<S> {
    /// The name under which the engine's handlers are recorded.
    #[must_use]
    pub fn application(&self) -> &str {
        &self.inner.application
    }

    pub(crate) fn statements(&self) -> &Statements {
        &self.inner.statements
    }
}

impl<S: Store> Inner<S> {
    fn next_attempt(&self) -> i64 {
        self.attempts.fetch_add(1, Ordering::Relaxed).cast_signed()
    }

    fn expects_duplicate(&self, meta: &HandlerMeta) -> bool {
        self.seen.get(meta.name).is_some_and(|seen| seen.duplicate.load(Ordering::Relaxed))
    }

    fn note(&self, meta: &HandlerMeta, duplicate: bool) {
        if let Some(seen) = self.seen.get(meta.name)
            && seen.duplicate.load(Ordering::Relaxed) != duplicate
        {
            seen.duplicate.store(duplicate, Ordering::Relaxed);
        }
    }
}

impl<S: Store> Clone for Engine<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: Store> std::fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("store", &S::NAME)
            .field("handlers", &self.inner.registry.handlers().len())
            .finish_non_exhaustive()
    }
}

/// Configures an [`Engine`].
#[derive(Debug)]
#[must_use = "nothing runs before `start` is awaited"]
pub struct EngineBuilder<S: Store> {
    pool: Pool<S>,
    application: String,
    claim_wait: Option<Duration>,
    max_runs: u32,
    isolation: Option<Isolation>,
    statement_cache: bool,
}

/// Who starts an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// A node that will consume: what it declares is written down, for the purge of all nodes.
    Node,
    /// Somebody who asks or tidies up. Writes nothing down, so that looking with another release changes nothing.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line's"))]
    Visitor,
}

impl<S: Store> EngineBuilder<S> {
    /// The name of the application that the handlers belong to, for databases that several applications share: its purge
    /// leaves the keys of the others alone. Default: `default`. At most 128 characters of ASCII.
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.application = name.into();
        self
    }

    /// How long a delivery waits for another delivery of the same event before it is [busy](crate::ErrorKind::Busy).
    /// Default: 5 seconds. At least a millisecond, and at most an hour: a longer wait is taken as that.
    ///
    /// It waits on a connection. How it is bounded depends on the store:
    ///
    /// - PostgreSQL: by a `lock_timeout` for the claim alone. What the handler then finds set is the value that the pool's
    ///   first connection had at start. A pool whose connections have a `lock_timeout` of their own, as with
    ///   `PgConnectOptions::options([("lock_timeout", "5s")])`, is bounded by that unless this is called, which spares the
    ///   server some work per delivery.
    /// - MariaDB: in whole seconds, at least one. MySQL: by the server's own `innodb_lock_wait_timeout` instead, 50 seconds
    ///   unless configured.
    /// - SQLite, where one transaction writes at a time: it is the wait for any other writer, and the connection's
    ///   `busy_timeout` comes on top.
    pub fn claim_wait(mut self, wait: Duration) -> Self {
        self.claim_wait = Some(wait);
        self
    }

    /// How often a transaction is run, all in all, when it meets serialization failures or deadlocks. Default: 5.
    /// `1` means never again; so does `0`.
    pub fn max_runs(mut self, runs: u32) -> Self {
        self.max_runs = runs;
        self
    }

    /// The isolation level of the deliveries' transactions. Default: whatever the database is configured to use.
    /// Without effect on SQLite, which is always serializable.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Whether the engine's statements are prepared once per connection, under a name. Default: `true`.
    ///
    /// `false` is for a pooler in transaction mode that does not follow named statements (PgBouncer before 1.21, or without
    /// `max_prepared_statements`). Each statement then takes a round trip more. The handler's own statements are the
    /// handler's: it adds `.persistent(false)` to its queries. No other session state is used in either case.
    pub fn statement_cache(mut self, keep: bool) -> Self {
        self.statement_cache = keep;
        self
    }

    /// Checks the registry and the tables, writes down which handlers there are and how long they keep their keys, and
    /// starts the engine.
    ///
    /// # Errors
    ///
    /// [`Registry`](crate::ErrorKind::Registry) when two handlers have one name or none is linked;
    /// [`Schema`](crate::ErrorKind::Schema) when the tables are missing, older or newer than this library;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was written down stays true.
    pub async fn start(self) -> Result<Engine<S>, Error> {
        self.start_as(Start::Node).await
    }

    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line's"))]
    pub(crate) fn name(&self) -> &str {
        &self.application
    }

    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line's"))]
    pub(crate) fn pool(&self) -> &Pool<S> {
        &self.pool
    }

    pub(crate) async fn start_as(self, start: Start) -> Result<Engine<S>, Error> {
        let registry = Registry::load()?;
        let mut conn = Borrowed::from(&self.pool).await?;
        schema::check::<S>(&mut conn).await?;
        // PostgreSQL reads a lock_timeout of zero as no bound at all, and none beyond 24 days.
        let claim_wait = self.claim_wait.map(|wait| wait.clamp(Duration::from_millis(1), LONGEST_CLAIM_WAIT));
        let settings = Settings { claim_wait, isolation: self.isolation, statement_cache: self.statement_cache };
        let statements =
            S::statements(&mut conn, &settings).await.map_err(|error| schema::connection_error::<S>(error))?;
        if start == Start::Node {
            record::handlers::<S>(&mut conn, &statements, &self.application, &registry).await?;
        }
        conn.give_back();
        let inner = Inner {
            connections: Connections::new(self.pool),
            seen: registry.handlers().map(|meta| (meta.name, SeenLately::default())).collect(),
            application: self.application,
            start,
            registry,
            statements,
            claim_wait: claim_wait.unwrap_or(CLAIM_WAIT),
            max_runs: self.max_runs,
            attempts: AtomicU64::new(RandomState::new().build_hasher().finish()),
        };
        Ok(Engine { inner: Arc::new(inner) })
    }
}
