#![allow(dead_code, unused_imports)]

use idem_runtime::{at_most_once, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[at_most_once(loss = "one reading in the chart")]
async fn a(msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = msg;
    Ok(())
}

#[naturally_idempotent]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
