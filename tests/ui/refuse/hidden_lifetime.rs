#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key(msg.order_id), retention = "7d")]
async fn a(tx: &mut Transaction<Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
