#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
    cents: f64,
    body: Vec<u8>,
}

#[idempotent(key(msg.order_id), retention = "0d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "-1d")]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "")]
async fn c(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7")]
async fn d(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7 dayz")]
async fn e(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "99999999999999w")]
async fn f(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "1mo")]
async fn g(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "1.5d")]
async fn h(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = "7 d")]
async fn i(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = 7)]
async fn j(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), retention = -1)]
async fn k(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
