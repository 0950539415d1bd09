//! A connection of the pool's, for upkeep.

use std::ops::{Deref, DerefMut};

use sqlx::Pool;
use sqlx::pool::PoolConnection;

use super::{Store, schema};
use crate::error::Error;

/// A pooled connection that goes back only when it is [given back](Self::give_back). Dropped before, be it by an error, a
/// panic or a cancelled future, it may be in the middle of a transaction, and is taken out of use.
pub(crate) struct Borrowed<S: Store> {
    conn: Option<PoolConnection<S>>,
}

impl<S: Store> Borrowed<S> {
    pub(crate) async fn from(pool: &Pool<S>) -> Result<Self, Error> {
        let conn = pool.acquire().await.map_err(|error| schema::connection_error::<S>(error))?;
        Ok(Self { conn: Some(conn) })
    }

    pub(crate) fn give_back(mut self) {
        drop(self.conn.take());
    }
}

impl<S: Store> Drop for Borrowed<S> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            S::abandon(conn);
        }
    }
}

impl<S: Store> Deref for Borrowed<S> {
    type Target = S::Connection;

    #[allow(clippy::expect_used, reason = "only `give_back` and `drop` take it, and they take the whole")]
    fn deref(&self) -> &S::Connection {
        self.conn.as_ref().expect("it holds its connection until it ends")
    }
}

impl<S: Store> DerefMut for Borrowed<S> {
    #[allow(clippy::expect_used, reason = "only `give_back` and `drop` take it, and they take the whole")]
    fn deref_mut(&mut self) -> &mut S::Connection {
        self.conn.as_mut().expect("it holds its connection until it ends")
    }
}
