//! Messages and states that live for ever: no consumer can lend them, but whoever has them can call the handler.

#![deny(warnings)]

use idem_runtime::{Engine, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Config {
    region: u8,
}

#[idempotent(key(id), retention = "7d")]
async fn message(_tx: &mut Transaction<'_, Sqlite>, id: &'static str) -> Result<&'static str, sqlx::Error> {
    Ok(id)
}

#[idempotent(key(id, config.region), retention = "7d")]
async fn state(
    _tx: &mut Transaction<'_, Sqlite>,
    id: &str,
    config: &'static Config,
) -> Result<&'static u8, sqlx::Error> {
    Ok(&config.region)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(_tx: &mut Transaction<'_, Sqlite>, id: &u8, config: &'static Config) -> Result<u8, sqlx::Error> {
    Ok(id + config.region)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(id: &u8, config: &'static Config) -> Result<u8, std::fmt::Error> {
    Ok(id + config.region)
}

fn main() {
    static CONFIG: Config = Config { region: 7 };
    async fn calls(engine: Engine<Sqlite>) {
        let _ = (message(&engine, "1").await, state(&engine, "1", &CONFIG).await);
        let _ = (natural(&engine, &1, &CONFIG).await, ping(&engine, &1, &CONFIG).await);
    }
    let _ = calls;
}
