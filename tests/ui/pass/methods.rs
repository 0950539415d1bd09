//! Receivers of every kind, under each attribute, and keys that read `self`.

#![deny(warnings)]

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use idem_runtime::{Engine, Registry, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: u64,
}

#[derive(Clone)]
struct Ledger {
    tenant: u8,
}

impl Ledger {
    #[idempotent(key(msg.id), retention = "7d", name = "ledger.by_ref")]
    async fn by_ref(&self, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<u8, sqlx::Error> {
        Ok(self.tenant)
    }

    #[idempotent(key(self.tenant, msg.id), retention = "7d", name = "ledger.by_arc")]
    async fn by_arc(self: Arc<Self>, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<u8, sqlx::Error> {
        Ok(self.tenant)
    }

    #[idempotent(key(msg.id), retention = "7d", name = "ledger.by_mut")]
    async fn by_mut(&mut self, _tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Result<(), sqlx::Error> {
        self.tenant += 1;
        Ok(())
    }

    #[idempotent(key(msg.id), retention = "7d", name = "ledger.by_value")]
    async fn by_value(mut self, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<Self, sqlx::Error> {
        self.tenant += 1;
        Ok(self)
    }

    #[idempotent(key(msg.id), retention = "7d", name = "ledger.named")]
    async fn named<'s>(self: &'s Self, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<&'s u8, sqlx::Error> {
        Ok(&self.tenant)
    }

    #[idempotent(key(msg.id), retention = "7d", name = "ledger.pinned")]
    async fn pinned(self: Pin<&mut Self>, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<u8, sqlx::Error> {
        Ok(self.tenant)
    }

    #[naturally_idempotent(reason = "sets the price to the message's value", name = "ledger.natural")]
    async fn natural(&self, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<u64, sqlx::Error> {
        Ok(msg.id)
    }

    #[naturally_idempotent(reason = "sets the price to the message's value", name = "ledger.natural_arc")]
    async fn natural_arc(self: Arc<Self>, _tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Result<u64, sqlx::Error> {
        Ok(msg.id)
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
    async fn ping(&self, msg: &Paid) -> Result<u64, std::fmt::Error> {
        Ok(msg.id + u64::from(self.tenant))
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping_arc")]
    async fn ping_arc(self: Arc<Self>, mut msg: Paid) -> Result<u64, std::fmt::Error> {
        msg.id += 1;
        Ok(msg.id)
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping_mut")]
    async fn ping_mut(&mut self, _msg: &Paid) -> Result<(), std::fmt::Error> {
        self.tenant += 1;
        Ok(())
    }
}

fn main() {
    async fn calls(engine: Engine<Sqlite>) {
        let (msg, mut ledger) = (Paid { id: 1 }, Ledger { tenant: 2 });
        let shared = Arc::new(ledger.clone());
        let _ = ledger.by_ref(&engine, &msg).await;
        let _ = Arc::clone(&shared).by_arc(&engine, &msg).await;
        let _ = ledger.by_mut(&engine, Paid { id: 1 }).await;
        let _ = ledger.named(&engine, &msg).await;
        let _ = Pin::new(&mut ledger).pinned(&engine, &msg).await;
        let _ = ledger.natural(&engine, &msg).await;
        let _ = Arc::clone(&shared).natural_arc(&engine, Paid { id: 1 }).await;
        let _ = ledger.ping(&engine, &msg).await;
        let _ = shared.ping_arc(&engine, Paid { id: 1 }).await;
        let _ = ledger.ping_mut(&engine, &msg).await;
        let _ = ledger.by_value(&engine, &msg).await;
        let _ = Rc::new(1);
    }
    let _ = calls;
    let registry = Registry::load().unwrap();
    assert_eq!(registry.get("ledger.by_arc").unwrap().key, ["self.tenant", "msg.id"]);
    assert_eq!(registry.handlers().len(), 11);
}
