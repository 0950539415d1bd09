//! A message that is moved into the handler: cloneable or not, changed or not.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[derive(Clone)]
struct Paid {
    id: String,
}

struct Once {
    id: String,
    file: std::fs::File,
}

#[idempotent(key(msg.id), retention = "7d")]
async fn cloned(_tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Result<String, sqlx::Error> {
    Ok(msg.id)
}

#[idempotent(key(msg.id), retention = "7d")]
async fn moved(_tx: &mut Transaction<'_, Sqlite>, msg: Once) -> Result<(String, std::fs::File), sqlx::Error> {
    Ok((msg.id, msg.file))
}

#[idempotent(key(msg.id), retention = "7d")]
async fn changed(_tx: &mut Transaction<'_, Sqlite>, mut msg: Paid) -> Result<String, sqlx::Error> {
    msg.id.push('!');
    Ok(msg.id)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(_tx: &mut Transaction<'_, Sqlite>, mut msg: Paid) -> Result<String, sqlx::Error> {
    msg.id.clear();
    Ok(msg.id)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(mut msg: Once) -> Result<std::fs::File, std::fmt::Error> {
    msg.id.clear();
    Ok(msg.file)
}

fn main() {
    assert_eq!(cloned::key(&Paid { id: "1".into() }), changed::key(&Paid { id: "1".into() }));
    let _ = (moved::META, natural::META, ping::META);
}
