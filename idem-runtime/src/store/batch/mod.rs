//! What a batch asks of a database: many keys in one statement, in the order that they are given in.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use sqlx::{ColumnIndex, Database, Decode, Row, Type};

use super::{Claimed, KeyRow, NewKey, Statements};

/// Fails when the mark of our transaction is gone, and sets it again.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
const REMARK: &str = "RELEASE SAVEPOINT idem_transaction_mark; SAVEPOINT idem_transaction_mark";

/// The keys of one handler, all different, and sorted: two batches that wait for each other's keys would be a deadlock.
#[doc(hidden)] // Not public API: the seam between engine and store.
pub trait Batch: Database {
    /// Inserts the keys, each as the single claim does, and says of each what became of it. Every key that is new comes
    /// with the clock.
    fn claim_all<'c>(
        conn: &'c mut Self::Connection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Claimed>>>;

    /// Reads the committed ones of the keys, one round trip for all.
    fn find_all<'c>(
        conn: &'c mut Self::Connection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Option<KeyRow>>>>;

    /// Whether the transaction is still ours, asked after each message where a handler can end it without noticing.
    fn intact(_: &mut Self::Connection) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// Puts what was found by key in the order of the keys.
fn in_order<T>(keys: &[NewKey<'_>], mut found: HashMap<Vec<u8>, T>) -> Vec<Option<T>> {
    keys.iter().map(|key| found.remove(key.event_key.as_bytes())).collect()
}

/// Reads the rows of a look-up, whose first column is the key.
fn key_rows<R>(rows: &[R]) -> sqlx::Result<HashMap<Vec<u8>, KeyRow>>
where
    R: Row,
    usize: ColumnIndex<R>,
    &'static str: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    rows.iter().map(|row| Ok((row.try_get(0)?, super::key_row(row)?))).collect()
}
