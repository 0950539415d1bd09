//! A pooled connection that cannot go back to the pool in the middle of a transaction.

use sqlx::Pool;
use sqlx::pool::PoolConnection;

use crate::store::Store;

/// A connection taken for one run of a transaction.
///
/// Dropped before [`end`](Self::end), be it by an early return, a panic or a cancelled future, the connection does not
/// go back as it is: a `BEGIN` that was cut off leaves its transaction open, and the next user of the connection would
/// write into it (<https://github.com/transact-rs/sqlx/issues/4385>).
pub(super) struct Lease<S: Store> {
    conn: Option<PoolConnection<S>>,
}

impl<S: Store> Lease<S> {
    /// Takes a connection; `tested` as the pool does it, with a round trip for one that was idle.
    pub(super) async fn take(pool: &Pool<S>, tested: bool) -> sqlx::Result<Self> {
        let idle = if tested { None } else { pool.try_acquire() };
        let conn = match idle {
            Some(conn) => conn,
            None => pool.acquire().await?,
        };
        Ok(Self { conn: Some(conn) })
    }

    #[allow(clippy::expect_used, reason = "only `end` and `drop` take it, and they take the lease")]
    pub(super) fn conn(&mut self) -> &mut S::Connection {
        self.conn.as_mut().expect("a lease holds its connection until it ends")
    }

    /// The transaction is over; the connection may go back to the pool.
    pub(super) fn end(mut self) {
        self.conn = None;
    }
}

impl<S: Store> Drop for Lease<S> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            S::abandon(conn);
        }
    }
}
