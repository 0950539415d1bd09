//! A pooled connection that cannot go back to the pool in the middle of a transaction, and that need not go back between
//! two deliveries in a row.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::Pool;
use sqlx::pool::PoolConnection;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::clock::monotonic;
use crate::error::Error;
use crate::handler::HandlerMeta;
use crate::store::{Store, schema};
use crate::telemetry;

/// How long a connection may go from delivery to delivery before others who wait for the pool get their turn.
const LONGEST_HOLD: Duration = Duration::from_millis(50);

/// The pool, and the connections that ended a delivery just now.
///
/// Going back to the pool and coming out of it costs a round trip each. So a connection goes back one scheduling later,
/// and a delivery that starts before that takes it over as it is.
pub(super) struct Connections<S: Store> {
    pool: Pool<S>,
    kept: Arc<Mutex<Vec<Kept<S>>>>,
}

struct Kept<S: Store> {
    conn: PoolConnection<S>,
    since: Instant,
}

impl<S: Store> Connections<S> {
    pub(super) fn new(pool: Pool<S>) -> Self {
        Self { pool, kept: Arc::default() }
    }

    pub(super) fn pool(&self) -> &Pool<S> {
        &self.pool
    }

    /// Takes a connection for a delivery.
    pub(super) async fn take(&self) -> Result<Lease<'_, S>, Error> {
        match pop(&self.kept) {
            Some(Kept { conn, since }) => Ok(Lease { conn: Some(conn), since, from: self }),
            None => self.take_tested().await.map_err(|error| self.unavailable(error)),
        }
    }

    /// Takes a connection from the pool, which has seen that it works.
    pub(super) async fn take_tested(&self) -> sqlx::Result<Lease<'_, S>> {
        let conn = self.pool.acquire().await?;
        Ok(Lease { conn: Some(conn), since: monotonic(), from: self })
    }

    /// Keeps a connection until the running task pauses, unless it was kept for long enough.
    fn keep(&self, conn: PoolConnection<S>, since: Instant) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if monotonic().saturating_duration_since(since) >= LONGEST_HOLD {
            return;
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(Kept { conn, since });
        let kept = Arc::clone(&self.kept);
        // One for each that is kept: it gives back one, if there is still one.
        runtime.spawn(async move { drop(pop(&kept)) });
    }

    fn unavailable(&self, error: sqlx::Error) -> Error {
        let mut unavailable = schema::connection_error::<S>(error);
        let options = self.pool.options();
        if self.is_exhausted() {
            unavailable = unavailable.detail(format!(
                "none of the pool's {} came free within {:?}; a handler that takes a second one from this pool waits for \
                 itself, and should use the transaction it is given",
                options.get_max_connections(),
                options.get_acquire_timeout(),
            ));
        }
        unavailable
    }

    fn is_exhausted(&self) -> bool {
        self.pool.num_idle() == 0 && self.pool.size() >= self.pool.options().get_max_connections()
    }

    /// A handler that failed after as long as an acquire may take, while no connection was free, probably waited for one.
    pub(super) fn hint_at_second_connection(&self, meta: &'static HandlerMeta, started: Instant) {
        let waited = monotonic().saturating_duration_since(started);
        if self.is_exhausted() && waited >= self.pool.options().get_acquire_timeout() {
            telemetry::second_connection(meta, waited);
        }
    }
}

fn pop<S: Store>(kept: &Mutex<Vec<Kept<S>>>) -> Option<Kept<S>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

impl<S: Store> Drop for Connections<S> {
    fn drop(&mut self) {
        // Outside a runtime the pool cannot take connections back, and panics. What is left over here then ends with the
        // process.
        if Handle::try_current().is_err() {
            while let Some(kept) = pop(&self.kept) {
                std::mem::forget(kept);
            }
        }
    }
}

/// A connection taken for one run of a transaction.
///
/// Dropped before [`end`](Self::end), be it by an early return, a panic or a cancelled future, the connection does not
/// go back as it is: a `BEGIN` that was cut off leaves its transaction open, and the next user of the connection would
/// write into it (<https://github.com/transact-rs/sqlx/issues/4385>).
pub(super) struct Lease<'a, S: Store> {
    conn: Option<PoolConnection<S>>,
    since: Instant,
    from: &'a Connections<S>,
}

impl<S: Store> Lease<'_, S> {
    #[allow(clippy::expect_used, reason = "only `end` and `drop` take it, and they take the lease")]
    pub(super) fn conn(&mut self) -> &mut S::Connection {
        self.conn.as_mut().expect("a lease holds its connection until it ends")
    }

    /// Gives the connection to whoever cannot borrow it.
    #[cfg(feature = "axum")]
    #[allow(clippy::expect_used, reason = "a lease that was lent is not used before it is back")]
    pub(super) fn lend(&mut self) -> super::lend::Lent<S> {
        super::lend::Lent::new(self.conn.take().expect("a lease holds its connection until it ends"))
    }

    #[cfg(feature = "axum")]
    pub(super) fn take_back(&mut self, lent: super::lend::Lent<S>) {
        self.conn = lent.into_inner();
    }

    /// The transaction is over; the connection may be used again.
    pub(super) fn end(mut self) {
        if let Some(conn) = self.conn.take() {
            self.from.keep(conn, self.since);
        }
    }
}

impl<S: Store> Drop for Lease<'_, S> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            S::abandon(conn);
        }
    }
}
