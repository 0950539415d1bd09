//! Type, const and lifetime parameters, bounds, where clauses and `impl Trait`, under each attribute.

#![deny(warnings)]

use std::fmt::Debug;
use std::marker::PhantomData;

use idem_runtime::{Engine, KeyPart, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, SqliteConnection, Transaction};

#[idempotent(key(id, N), retention = "7d")]
async fn bounded<T: KeyPart + Sync + ?Sized, const N: usize>(
    _tx: &mut Transaction<'_, Sqlite>,
    id: &T,
    _notes: [u8; N],
) -> Result<usize, sqlx::Error> {
    Ok(N)
}

#[idempotent(key(id), retention = "7d")]
async fn with_where_clause<T, U>(_conn: &mut SqliteConnection, id: &T, other: U) -> Result<U, sqlx::Error>
where
    T: KeyPart + Sync,
    U: for<'a> FnOnce(&'a str) -> &'a str + Send,
    Vec<U>: Send,
{
    Ok(other)
}

#[idempotent(key(id), retention = "7d")]
async fn impl_trait(_conn: &mut SqliteConnection, id: impl KeyPart + Send + Sync) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), retention = "7d")]
async fn not_inferred<E: From<sqlx::Error> + Send, M: Send>(
    _conn: &mut SqliteConnection,
    id: &str,
) -> Result<PhantomData<M>, E> {
    Ok(PhantomData)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural<T: Debug + Sync, const N: usize>(
    _tx: &mut Transaction<'_, Sqlite>,
    msg: &[T; N],
) -> Result<String, sqlx::Error> {
    Ok(format!("{msg:?}"))
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping<T, const N: usize>(msg: &[T; N]) -> Result<usize, std::fmt::Error>
where
    T: Sync,
{
    let _ = msg;
    Ok(N)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping_not_inferred<'m, E: Send>(msg: &'m str) -> Result<&'m str, E> {
    Ok(msg)
}

fn main() {
    async fn calls(engine: Engine<Sqlite>) {
        let _ = bounded(&engine, "text", [1, 2]).await;
        let _ = bounded::<u8, 1>(&engine, &7, [1]).await;
        let _ = with_where_clause(&engine, &7_u8, |text: &str| text).await;
        let _ = impl_trait(&engine, 7_u8).await;
        let _ = not_inferred::<sqlx::Error, String>(&engine, "1").await;
        let _ = natural(&engine, &["a"]).await;
        let _ = ping(&engine, &["a"]).await;
        let _ = ping_not_inferred::<std::fmt::Error, _>(&engine, "a").await;
    }
    let _ = calls;
    assert_eq!(bounded::key("text", &[1, 2]).unwrap().as_str(), "1/s:text/i:2");
}
