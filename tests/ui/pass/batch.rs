//! A body for many messages beside the one for each: with and without a state, a connection, in a module.

#![deny(warnings, missing_docs)]

use idem_runtime::{Engine, idempotent};
use sqlx::{Sqlite, SqliteConnection, Transaction};

struct Paid {
    order_id: String,
}

mod many {
    use super::{Paid, Sqlite, Transaction};

    pub(crate) async fn credit(tx: &mut Transaction<'_, Sqlite>, msgs: &[&Paid]) -> Result<(), sqlx::Error> {
        let orders: Vec<_> = msgs.iter().map(|msg| msg.order_id.as_str()).collect();
        sqlx::query("INSERT INTO credit SELECT value FROM json_each(?)").bind(orders.join(",")).execute(&mut **tx).await?;
        Ok(())
    }
}

#[idempotent(key(msg.order_id), retention = "7d", batch = many::credit)]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    many::credit(tx, &[msg]).await
}

async fn tell_all(_: &mut SqliteConnection, ids: &[&u64], prefix: &String) -> Result<(), std::fmt::Error> {
    if ids.is_empty() || prefix.is_empty() { Err(std::fmt::Error) } else { Ok(()) }
}

#[idempotent(batch = self::tell_all, key(id), retention = "7d")]
async fn tell(conn: &mut SqliteConnection, id: &u64, prefix: &String) -> Result<(), std::fmt::Error> {
    tell_all(conn, &[id], prefix).await
}

async fn use_them(engine: &Engine<Sqlite>, msgs: &[&Paid]) {
    assert_eq!(engine.handle_batch::<credit>(msgs, &()).await.len(), msgs.len());
    let _ = engine.handle_batch::<tell>(&[&7, &8], &String::from("order ")).await;
}

fn main() {
    let _ = use_them;
}
