#![allow(dead_code, unused_imports)]

use idem_runtime::{at_most_once, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[naturally_idempotent(reason = "charges what is still open", redelivery(broker = "2d"),
    external(provider = "stripe", guard = provider_key, window = "24h", risk = "a second charge"))]
async fn a(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = (tx, msg);
    Ok(())
}

#[at_most_once(reason = "a late mail is worthless", loss = "one mail to a customer",
    external(provider = "mail", guard = provider_key, window = "24h", risk = "a second mail"))]
async fn b(msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = msg;
    Ok(())
}

fn main() {}
