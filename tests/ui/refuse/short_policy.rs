#![allow(dead_code, unused_imports)]

use idem_runtime::{Policy, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

const PAYMENTS: Policy =
    Policy::retention("5d").redelivery([("broker", "1d"), ("dead_letter", "3d"), ("replay", "2d")]);

#[idempotent(key(msg.order_id), policy = PAYMENTS)]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
