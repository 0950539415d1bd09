#![allow(dead_code, unused_imports)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key(msg.order_id), retention = "7d", reason = "it seemed right")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[at_most_once(reason = "a late reading is worthless", loss = "one reading", replay)]
async fn b(msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = msg;
    Ok(())
}

#[naturally_idempotent(key(msg.order_id), reason = "sets the price to the message's")]
async fn c(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
