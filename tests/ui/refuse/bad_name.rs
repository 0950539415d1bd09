#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
    cents: f64,
    body: Vec<u8>,
}

#[idempotent(key(msg.order_id), retention = "7d", name = "")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7d", name = "billing credit")]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7d", name = "größe")]
async fn c(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7d")]
async fn größe(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7d", name = credit)]
async fn e(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
