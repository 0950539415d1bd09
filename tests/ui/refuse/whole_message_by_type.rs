#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key(paid), retention = "7d")]
async fn a(_tx: &mut Transaction<'_, Sqlite>, paid: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {}
