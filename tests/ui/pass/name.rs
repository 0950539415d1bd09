//! Names of every permitted character, and of a function that has none of its own.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), retention = "7d", name = "Az09._:/-")]
async fn pinned(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), retention = "7d", name = "x")]
async fn zählt(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[at_most_once(name = "ping", reason = "the next ping tells as much", loss = "a single ping")]
async fn r#async(_id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn r#impl(_tx: &mut Transaction<'_, Sqlite>, _id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    assert_eq!([pinned::META.name, zählt::META.name], ["Az09._:/-", "x"]);
    assert_eq!([r#async::META.name, r#impl::META.name], ["ping", "impl"]);
    assert!(r#async::META.name_is_pinned && !r#impl::META.name_is_pinned);
}
