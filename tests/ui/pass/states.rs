//! Parameters behind the message: borrowed, mutable, moved, trait objects, closures, and several of them.

#![deny(warnings)]

use std::sync::Arc;

use idem_runtime::{Engine, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

trait Gateway: Send + Sync {
    fn charge(&self, id: &str) -> u32;
}

#[idempotent(key(id), retention = "7d")]
async fn shared(_tx: &mut Transaction<'_, Sqlite>, id: &str, gateway: &dyn Gateway) -> Result<u32, sqlx::Error> {
    Ok(gateway.charge(id))
}

#[idempotent(key(id), retention = "7d")]
async fn many(
    _tx: &mut Transaction<'_, Sqlite>,
    id: &str,
    count: &mut u32,
    gateway: Arc<dyn Gateway>,
    mut notes: Vec<String>,
    price: impl Fn(u32) -> u32 + Send,
) -> Result<Vec<String>, sqlx::Error> {
    *count += price(gateway.charge(id));
    notes.push(count.to_string());
    Ok(notes)
}

#[idempotent(key(tenant, id), retention = "7d")]
async fn in_the_key(_tx: &mut Transaction<'_, Sqlite>, id: &str, tenant: &u32) -> Result<(), sqlx::Error> {
    Ok(())
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(
    _tx: &mut Transaction<'_, Sqlite>,
    id: &str,
    gateway: &(dyn Gateway + 'static),
) -> Result<u32, sqlx::Error> {
    Ok(gateway.charge(id))
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(id: &str, gateway: &dyn Gateway, count: &mut u32) -> Result<u32, std::fmt::Error> {
    *count += 1;
    Ok(gateway.charge(id))
}

fn main() {
    async fn calls(engine: Engine<Sqlite>, gateway: Arc<dyn Gateway>) {
        let mut count = 0;
        let _ = shared(&engine, "1", &*gateway).await;
        let _ = many(&engine, "1", &mut count, Arc::clone(&gateway), Vec::new(), |cents| cents + 1).await;
        let _ = in_the_key(&engine, "1", &7).await;
        let _ = natural(&engine, "1", &*gateway).await;
        let _ = engine.handle::<natural>("1", &*gateway).await;
        let _ = ping(&engine, "1", &*gateway, &mut count).await;
    }
    let _ = calls;
    assert_eq!(in_the_key::key("1", &7).unwrap().as_str(), "1/i:7/s:1");
}
