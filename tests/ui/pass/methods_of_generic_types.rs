//! Methods of generic types, of types with lifetimes, and of primitive ones by a trait of the user's.

#![deny(warnings)]

use std::sync::Arc;

use idem_runtime::{KeyPart, Registry, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Sink<'s, T, const N: usize> {
    targets: &'s [T; N],
}

impl<'s, T: AsRef<str> + Send + Sync, const N: usize> Sink<'s, T, N> {
    #[idempotent(key(id, N), retention = "7d", name = "sink.write")]
    async fn write<I>(&self, _tx: &mut Transaction<'_, Sqlite>, id: I) -> Result<&'s str, sqlx::Error>
    where
        I: KeyPart + Send + Sync,
    {
        Ok(self.targets[0].as_ref())
    }

    #[naturally_idempotent(reason = "sets the price to the message's value", name = "sink.natural")]
    async fn natural<I: Send>(self: Arc<Self>, _tx: &mut Transaction<'_, Sqlite>, id: I) -> Result<I, sqlx::Error> {
        Ok(id)
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "sink.ping")]
    async fn ping<I: Send>(&self, id: I) -> Result<(I, &'s T), std::fmt::Error> {
        Ok((id, &self.targets[0]))
    }
}

fn main() {
    let registry = Registry::load().unwrap();
    let names: Vec<_> = registry.handlers().map(|meta| meta.name).collect();
    assert_eq!(names, ["sink.natural", "sink.ping", "sink.write"]);
}
