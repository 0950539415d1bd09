#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
    kind: Option<String>,
    cents: f64,
    body: Vec<u8>,
}

struct Response(u16);

#[idempotent(key(msg.order_id), retention = "7d")]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Response {
    let _ = (tx, msg);
    Response(500)
}

fn main() {}
