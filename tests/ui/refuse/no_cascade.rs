#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
    cents: f64,
    body: Vec<u8>,
}

#[idempotent(key(msg.order_id))]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

async fn caller(engine: &idem_runtime::Engine<Sqlite>, msg: &Paid) {
    assert!(credit(engine, msg).await.unwrap().is_applied());
    assert!(engine.handle::<credit>(msg, &()).await.unwrap().is_applied());
    let _ = (credit::key(msg), credit::META.name);
}

fn main() {}
