#![allow(dead_code, unused_imports)]

use idem_runtime::{Policy, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

const PAYMENTS: Policy = Policy::retention("7d");

#[idempotent(key(msg.order_id), policy = PAYMENTS,
    external(provider = "stripe", guard = provider_key, window = "24h", risk = "a second charge"))]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
