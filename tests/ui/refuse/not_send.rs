#![allow(dead_code)]

use std::rc::Rc;

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[idempotent(key(msg.order_id), retention = "7d")]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let shared = Rc::new(msg.order_id.clone());
    sqlx::query("UPDATE account SET cents = 0 WHERE id = ?").bind(shared.as_str()).execute(&mut **tx).await?;
    drop(shared);
    Ok(())
}

fn main() {}
