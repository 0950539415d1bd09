#![allow(dead_code, unused_imports)]

use idem_runtime::{Policy, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

const PAYMENTS: Policy = Policy::retention("7d");

#[idempotent(key(msg.order_id), policy = PAYMENTS, retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), policy = PAYMENTS, redelivery(broker = "1d"))]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
