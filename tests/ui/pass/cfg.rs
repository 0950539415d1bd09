//! Handlers that are there in one configuration only, and attributes that are.

#![deny(warnings)]

use idem_runtime::{Registry, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[cfg(all())]
#[idempotent(key(id), retention = "7d")]
async fn one_of_two(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), retention = "nonsense", which, nobody, reads)]
#[cfg(any())]
async fn one_of_two(no: transaction, at: all) {
    nobody_knows_this(no, at)
}

#[cfg_attr(all(), naturally_idempotent(reason = "sets the price to the message's value"))]
#[cfg_attr(any(), at_most_once(reason = "the next ping tells as much", loss = "a single ping"))]
async fn by_cfg_attr(_tx: &mut Transaction<'_, Sqlite>, _id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
#[cfg(not(any()))]
#[cfg_attr(all(), allow(unused_variables))]
async fn ping(id: &str) -> Result<(), sqlx::Error> {
    #[cfg(any())]
    compile_error!("not here");
    Ok(())
}

struct Ledger;

impl Ledger {
    #[cfg(all())]
    #[idempotent(key(id), retention = "7d", name = "ledger.write")]
    async fn write(&self, _tx: &mut Transaction<'_, Sqlite>, id: u8) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[cfg(any())]
    #[idempotent(key(id), retention = "7d", name = "ledger.write")]
    async fn write(&self, _tx: &mut Transaction<'_, Sqlite>, id: NotThere) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

fn main() {
    let registry = Registry::load().unwrap();
    let names: Vec<_> = registry.handlers().map(|meta| meta.name).collect();
    assert_eq!(names, ["by_cfg_attr", "ledger.write", "one_of_two", "ping"]);
    let _ = (one_of_two::META, by_cfg_attr::META, ping::META, Ledger);
}
