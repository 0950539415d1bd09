//! A parameter with the handler's own name, under each attribute, as message and as state.

#![deny(warnings)]

use idem_runtime::{Engine, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: u64,
}

#[idempotent(key(paid.id), retention = "7d")]
async fn paid(_tx: &mut Transaction<'_, Sqlite>, paid: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn price(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid, price: &u64) -> Result<u64, sqlx::Error> {
    Ok(msg.id + price)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(ping: &Paid) -> Result<u64, std::fmt::Error> {
    Ok(ping.id)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn pong(msg: &Paid, pong: &u64) -> Result<u64, std::fmt::Error> {
    Ok(msg.id + pong)
}

fn main() {
    async fn calls(engine: Engine<Sqlite>, msg: Paid) {
        let _ = (paid(&engine, &msg).await, price(&engine, &msg, &1).await);
        // As types, which counts as use of the functions.
        let _ = (engine.handle::<ping>(&msg, &()).await, engine.handle::<pong>(&msg, &1).await);
    }
    let _ = calls;
}
