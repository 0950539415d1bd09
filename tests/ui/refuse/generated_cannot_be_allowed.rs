#![allow(dead_code, unused_imports)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};
use uuid::Uuid;

struct Paid {
    order_id: String,
}

#[idempotent(key(Uuid::new_v4()), allow(generated, reason = "it is unique after all"), retention = "7d")]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
