#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
    cents: f64,
    body: Vec<u8>,
}

#[idempotent(key(msg.order_id), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) {
    let _ = (tx, msg);
}

#[idempotent(key(msg.order_id), retention = "7d")]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> bool {
    let _ = (tx, msg);
    true
}

fn main() {}
