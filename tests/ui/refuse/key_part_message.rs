#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: OrderId,
    lines: Vec<String>,
}

struct OrderId(String);

#[idempotent(key(paid), retention = "7d")]
async fn whole(tx: &mut Transaction<'_, Sqlite>, paid: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, paid);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7d")]
async fn newtype(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.lines), retention = "7d")]
async fn list(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
