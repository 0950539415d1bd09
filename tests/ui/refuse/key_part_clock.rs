#![allow(dead_code)]

use std::time::{Duration, Instant, SystemTime};

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    at: SystemTime,
    seen: Instant,
    took: Duration,
}

#[idempotent(key(msg.order_id, msg.at), retention = "7d")]
async fn native(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key = "msg.order_id, msg.at", retention = "7d")]
async fn text(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.seen, msg.took), retention = "7d")]
async fn all(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
