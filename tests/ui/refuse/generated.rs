#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

struct Paid {
    order_id: String,
}

static COUNTER: AtomicU64 = AtomicU64::new(0);

#[idempotent(key(Uuid::new_v4()), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id, Uuid::new_v4()), retention = "7d")]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id), occurred_at = std::time::SystemTime::now(), retention = "7d")]
async fn c(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(COUNTER.fetch_add(1, Ordering::Relaxed)), retention = "7d")]
async fn d(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
