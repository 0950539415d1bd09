//! Named lifetimes, hidden ones, `'static`, and messages that borrow.

#![deny(warnings, elided_lifetimes_in_paths, single_use_lifetimes, unused_lifetimes)]

use std::borrow::Cow;

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Borrowed<'m> {
    id: &'m str,
    note: Cow<'m, str>,
}

#[idempotent(key(msg.id), retention = "7d")]
async fn named<'m>(_tx: &mut Transaction<'_, Sqlite>, msg: &'m Borrowed<'m>) -> Result<&'m str, sqlx::Error> {
    Ok(&msg.note)
}

#[idempotent(key(msg.id, other), retention = "7d")]
async fn two<'a: 'b, 'b>(
    _tx: &mut Transaction<'_, Sqlite>,
    msg: &'b Borrowed<'a>,
    other: &'a str,
) -> Result<&'b str, sqlx::Error> {
    Ok(if other.is_empty() { msg.id } else { other })
}

#[idempotent(key(msg.id), retention = "7d")]
async fn transaction<'c, 't>(tx: &'t mut Transaction<'c, Sqlite>, msg: &Borrowed<'_>) -> Result<(), sqlx::Error>
where
    'c: 't,
{
    let _: &'t mut Transaction<'c, Sqlite> = tx;
    Ok(())
}

#[idempotent(key(msg.id), retention = "7d")]
async fn moved(_tx: &mut Transaction<'_, Sqlite>, msg: Borrowed<'_>) -> Result<usize, sqlx::Error> {
    Ok(msg.note.len())
}

#[idempotent(key(id), retention = "7d")]
async fn for_ever(_tx: &mut Transaction<'_, Sqlite>, id: &'static str) -> Result<&'static str, sqlx::Error> {
    Ok(id)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural<'m>(_tx: &mut Transaction<'_, Sqlite>, msg: &Borrowed<'m>) -> Result<&'m str, sqlx::Error> {
    Ok(msg.id)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping<'m>(msg: Borrowed<'m>, _other: &str) -> Result<Cow<'m, str>, std::fmt::Error> {
    Ok(msg.note)
}

fn main() {
    let msg = Borrowed { id: "1", note: "n".into() };
    assert_eq!(named::key(&msg), moved::key(&msg));
    assert_eq!(two::key(&msg, "2").unwrap().as_str(), "1/s:1/s:2");
    let _ = (transaction::META, for_ever::META, natural::META, ping::META);
}
