#![allow(dead_code)]

use idem_runtime::{Retention, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

const BROKER: Retention = Retention::days(14);

#[idempotent(key(msg.order_id), retention = "7d", redelivery(broker = BROKER))]
async fn shorter(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

fn main() {}
