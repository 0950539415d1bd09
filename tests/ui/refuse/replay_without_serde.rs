#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
    cents: f64,
    body: Vec<u8>,
}

struct Receipt;

#[idempotent(key(msg.order_id), retention = "7d", replay)]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<Receipt, sqlx::Error> {
    let _ = (tx, msg);
    Ok(Receipt)
}

fn main() {}
