//! The key as a tuple behind `=`, of one part and of more.

#![deny(warnings)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    line: u32,
}

#[idempotent(key = (msg.order_id, msg.line), retention = "7d")]
async fn of_two(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key = (msg.order_id,), retention = "7d")]
async fn of_one(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    let msg = Paid { order_id: "o".into(), line: 2 };
    assert_eq!(of_two::key(&msg).unwrap().as_str(), "1/s:o/i:2");
    assert_eq!(of_one::META.key, ["msg.order_id"]);
}
