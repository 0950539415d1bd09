//! Every form that a part may have, native and in a string.

#![deny(warnings)]

use idem_runtime::{by_display, byte_id, idempotent};
use sqlx::{Sqlite, Transaction};

const VERSION: u8 = 2;

mod kinds {
    pub(crate) fn short(kind: &str) -> &str {
        &kind[..1]
    }
}

struct Order {
    id: u64,
}

struct Paid {
    order: Order,
    kind: String,
    lines: Vec<i32>,
    pair: (u8, bool),
    digits: [u8; 2],
    source: std::net::Ipv4Addr,
}

impl Paid {
    fn tenant(&self) -> char {
        't'
    }
}

#[idempotent(
    key(msg.order.id, kinds::short(&msg.kind), msg.lines[0], msg.pair.0 as u32, msg.tenant(), !msg.pair.1),
    retention = "7d"
)]
async fn native(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key = "msg.order.id, kinds::short(&msg.kind), msg.lines[0], msg.pair.0 as u32, msg.tenant(), !msg.pair.1",
    retention = "7d"
)]
async fn in_a_string(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key(-msg.lines[0], VERSION, u64::from(msg.pair.0), by_display(&msg.source), byte_id(&msg.digits), "v1"),
    retention = "7d"
)]
async fn others(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    let msg = Paid {
        order: Order { id: 7 },
        kind: "paid".into(),
        lines: vec![-1],
        pair: (3, false),
        digits: [1, 255],
        source: [127, 0, 0, 1].into(),
    };
    assert_eq!(native::key(&msg), in_a_string::key(&msg));
    assert_eq!(native::key(&msg).unwrap().as_str(), "1/i:7/s:p/i:-1/i:3/c:t/b:true");
    assert!(others::key(&msg).is_ok());
}
