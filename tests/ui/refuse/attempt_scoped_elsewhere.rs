#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    attempt: u32,
    received_at: std::time::SystemTime,
}

#[idempotent(key(msg.order_id), fingerprint(msg.attempt), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), occurred_at = msg.received_at, retention = "7d")]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
