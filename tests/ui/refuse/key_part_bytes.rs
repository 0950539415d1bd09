#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    number: Vec<u8>,
    account: [u8; 32],
}

#[idempotent(key(msg.order_id, msg.number), retention = "7d")]
async fn native(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key = "msg.order_id, msg.number", retention = "7d")]
async fn text(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.account), retention = "7d")]
async fn digest(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(number), retention = "7d")]
async fn raw(tx: &mut Transaction<'_, Sqlite>, number: &[u8]) -> Result<(), sqlx::Error> {
    let _ = (tx, number);
    Ok(())
}

fn main() {}
