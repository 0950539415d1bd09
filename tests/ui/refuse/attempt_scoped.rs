#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    delivery_tag: u64,
    headers: Headers,
    meta: Meta,
}

struct Meta {
    retry_count: u32,
}

impl Meta {
    fn redelivered(&self) -> bool {
        self.retry_count > 0
    }
}

struct Headers;

impl Headers {
    fn get(&self, _name: &str) -> &str {
        ""
    }
}

#[idempotent(key(msg.delivery_tag), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.order_id, msg.meta.retry_count), retention = "7d")]
async fn b(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.headers.get("X-Request-Id")), retention = "7d")]
async fn c(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(msg.meta.redelivered().to_string()), retention = "7d")]
async fn d(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
