//! A transaction on a connection that is owned, for a body that keeps it for longer than a borrow can last.
//!
//! sqlx's `Transaction` borrows its connection, or hides it. What is handed to a request's handler must own it, and be able
//! to take it out of use when it is cut off in the middle. Hence the driver's own side of transactions, which counts how
//! deep the connection is in them, so that the handler's `begin` is a savepoint.

#[cfg(any(feature = "postgres", feature = "mysql"))]
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use sqlx::Database;
#[cfg(feature = "axum")]
use sqlx::SqlStr;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use sqlx::{Either, Executor};
use sqlx_core::transaction::TransactionManager;

use super::CommitError;
#[cfg(feature = "axum")]
use super::Store;

/// The transactions of one database, without an object for each.
#[doc(hidden)] // Not public API: the seam between engine and store.
pub trait InPlace: Database {
    /// As [`Store::commit`]. The connection is [let go](let_go) afterwards, however it ended.
    fn commit_in_place(conn: &mut Self::Connection) -> BoxFuture<'_, Result<(), CommitError>>;

    /// As [`Store::rollback`].
    fn rollback_in_place(conn: &mut Self::Connection) -> BoxFuture<'_, bool>;
}

/// Opens a transaction that can be recognised at its commit.
#[cfg(feature = "axum")]
pub(crate) async fn begin<S: Store>(conn: &mut S::Connection, begin: &SqlStr) -> sqlx::Result<()> {
    S::TransactionManager::begin(conn, Some(begin.clone())).await
}

/// Has whatever is open rolled back with the connection's next request, as dropping a transaction does.
#[cfg(feature = "axum")]
pub(crate) fn let_go<S: Store>(conn: &mut S::Connection) {
    S::TransactionManager::start_rollback(conn);
}

/// Commits as the driver counts.
#[cfg(feature = "sqlite")]
pub(super) async fn commit<D: Database>(conn: &mut D::Connection) -> sqlx::Result<()> {
    D::TransactionManager::commit(conn).await
}

/// Rolls back as the driver counts.
pub(super) async fn rollback<D: Database>(conn: &mut D::Connection) -> bool {
    D::TransactionManager::rollback(conn).await.is_ok()
}

/// Proves and commits in one request: the proof is the first of these statements. An error is told together with whether
/// the proof had ended by then.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) async fn prove_and_commit<D: Database>(
    conn: &mut D::Connection,
    statements: &'static str,
    error: fn(sqlx::Error, bool) -> CommitError,
) -> Result<(), CommitError>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let mut proven = false;
    let mut results = sqlx::raw_sql(statements).fetch_many(conn);
    loop {
        match results.try_next().await {
            Ok(Some(Either::Left(_))) => proven = true,
            Ok(Some(Either::Right(_))) => {}
            // Whoever holds the transaction lets go of it; on MySQL that sends a ROLLBACK, which ends nothing.
            Ok(None) => return Ok(()),
            Err(failed) => return Err(error(failed, proven)),
        }
    }
}
