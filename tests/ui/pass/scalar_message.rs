//! A message that is the identifier itself.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[idempotent(key(order_id), retention = "7d")]
async fn text(_tx: &mut Transaction<'_, Sqlite>, order_id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key = "order_id", retention = "7d")]
async fn number(_tx: &mut Transaction<'_, Sqlite>, order_id: u64) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(&order_id[0], order_id[1].as_str()), retention = "7d")]
async fn slice(_tx: &mut Transaction<'_, Sqlite>, order_id: &[String]) -> Result<(), sqlx::Error> {
    Ok(())
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(_tx: &mut Transaction<'_, Sqlite>, cents: i64) -> Result<i64, sqlx::Error> {
    Ok(cents)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(host: String) -> Result<String, std::fmt::Error> {
    Ok(host)
}

fn main() {
    assert_eq!(text::key("7").unwrap().as_str(), "1/s:7");
    assert_eq!(number::key(&7).unwrap().as_str(), "1/i:7");
    assert_eq!(slice::key(&["a".into(), "b".into()]).unwrap().as_str(), "1/s:a/s:b");
    let _ = (natural::META, ping::META);
}
