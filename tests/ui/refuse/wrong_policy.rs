#![allow(dead_code, unused_imports)]

use idem_runtime::{Retention, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

const WINDOW: Retention = Retention::days(7);

#[idempotent(key(msg.order_id), policy = WINDOW)]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
