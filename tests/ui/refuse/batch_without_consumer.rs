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

#[idempotent(key(msg.order_id), retention = "7d", batch = credit_all)]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
