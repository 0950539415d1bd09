#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

async fn credit_all(tx: &mut Transaction<'_, Sqlite>, msgs: &[&Paid]) -> Result<(), sqlx::Error> {
    let _ = (tx, msgs);
    Ok(())
}

async fn by_value(tx: &mut Transaction<'_, Sqlite>, msgs: Vec<Paid>) -> Result<(), sqlx::Error> {
    let _ = (tx, msgs);
    Ok(())
}

async fn counts(tx: &mut Transaction<'_, Sqlite>, msgs: &[&Paid]) -> Result<usize, sqlx::Error> {
    let _ = tx;
    Ok(msgs.len())
}

#[idempotent(key(msg.order_id), retention = "7d", batch = by_value)]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7d", batch = counts)]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
