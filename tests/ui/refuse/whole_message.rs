#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key(msg), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(payload), retention = "7d")]
async fn b(tx: &mut Transaction<'_, Sqlite>, payload: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key = "event.to_string()", retention = "7d")]
async fn c(tx: &mut Transaction<'_, Sqlite>, event: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {}
