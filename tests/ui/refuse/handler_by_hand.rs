#![allow(dead_code)]

use idem_runtime::Engine;
use sqlx::Sqlite;

struct Paid {
    order_id: String,
}

/// No handler: nothing declares how it is kept from happening twice.
async fn credit(msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = msg;
    Ok(())
}

struct ByHand;

async fn consume(engine: &Engine<Sqlite>, msg: &Paid) {
    let _ = engine.handle::<ByHand>(msg, &()).await;
}

fn main() {}
