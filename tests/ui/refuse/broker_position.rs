#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    offset: i64,
    partition: i32,
}

#[idempotent(key(msg.partition, msg.offset), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
