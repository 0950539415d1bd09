#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
}

#[idempotent(key(msg.order_id, msg.kind), retention = "7d")]
async fn native(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key = "msg.order_id, msg.kind", retention = "7d")]
async fn text(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[idempotent(key(kind), retention = "7d")]
async fn bound(tx: &mut Transaction<'_, Sqlite>, Paid { kind, .. }: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, kind);
    Ok(())
}

fn main() {}
