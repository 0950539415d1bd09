#![allow(dead_code, unused_imports)]

use idem_runtime::{at_most_once, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    attempt: u32,
}

#[idempotent(key(msg.order_id, msg.attempt), allow(attempt_scoped, reason = "todo"), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[at_most_once(reason = "", loss = " ")]
async fn b(msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = msg;
    Ok(())
}

fn main() {}
