//! One part behind `=`: native, in brackets, in a string.

#![deny(warnings)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key = msg.order_id, retention = "7d")]
async fn native(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key = (msg.order_id), retention = "7d")]
async fn in_brackets(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key = "msg.order_id", retention = "7d")]
async fn in_a_string(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key = r#" msg . order_id "#, retention = "7d")]
async fn in_a_raw_string(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    for meta in [native::META, in_brackets::META, in_a_string::META, in_a_raw_string::META] {
        assert_eq!(meta.key, ["msg.order_id"]);
    }
}
