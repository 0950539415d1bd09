//! `#[tracing::instrument]` above and below, on functions and methods, under each attribute.

#![deny(warnings)]

use idem_runtime::{Engine, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};
use tracing::instrument;

#[derive(Debug)]
struct Paid {
    id: String,
}

#[instrument(skip(tx), fields(id = %msg.id), err, ret)]
#[idempotent(key(msg.id), retention = "7d")]
async fn above(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<u8, sqlx::Error> {
    sqlx::query("SELECT ?").bind(&msg.id).execute(&mut **tx).await?;
    Ok(7)
}

#[idempotent(key(msg.id), retention = "7d")]
#[instrument(name = "below", skip_all, fields(id = %msg.id))]
async fn below(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<u8, sqlx::Error> {
    sqlx::query("SELECT ?").bind(&msg.id).execute(&mut **tx).await?;
    Ok(7)
}

#[instrument(skip(tx, msg))]
#[naturally_idempotent(reason = "sets the price to the message's value")]
#[instrument(skip_all)]
async fn both(tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Result<String, sqlx::Error> {
    let _ = tx;
    Ok(msg.id)
}

#[instrument]
#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(msg: &Paid) -> Result<usize, std::fmt::Error> {
    Ok(msg.id.len())
}

#[derive(Debug)]
struct Ledger;

impl Ledger {
    #[instrument(skip(self, tx))]
    #[idempotent(key(msg.id), retention = "7d", name = "ledger.write")]
    async fn write(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
        let _ = (self, tx);
        Ok(())
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
    #[instrument(ret)]
    async fn ping<T: std::fmt::Debug + Send + 'static>(&self, msg: T) -> Result<T, std::fmt::Error> {
        Ok(msg)
    }
}

fn main() {
    fn sent<T: Send>(_: T) {}
    fn calls(engine: &Engine<Sqlite>, msg: &'static Paid) {
        sent(above(engine, msg));
        sent(below(engine, msg));
        sent(both(engine, Paid { id: String::new() }));
        sent(ping(engine, msg));
        sent(Ledger.write(engine, msg));
        sent(Ledger.ping(engine, 7));
    }
    let _ = calls;
}
