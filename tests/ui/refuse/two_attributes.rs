#![allow(dead_code, unused_imports)]

use idem_runtime::{idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key(msg.order_id), retention = "7d")]
#[naturally_idempotent(reason = "sets the price to the message's")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
