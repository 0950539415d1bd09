//! Handlers that batches run, by type, on each store.

#![allow(unreachable_pub, reason = "an associated type may not be more private than its trait")]

use std::sync::Mutex;
use std::time::SystemTime;

use idem_runtime::Handler;

use crate::{Message, TestStore};

/// An event with all that a key can have beside it.
#[derive(Debug, Clone)]
pub struct Detailed {
    pub id: &'static str,
    pub cents: i64,
    pub at: SystemTime,
}

/// The messages that each call for many was handed.
pub type Slices = Mutex<Vec<Vec<String>>>;

/// A store with handlers of its own.
pub trait Batches: TestStore {
    /// Does what the message says, and returns the number of its run.
    type Each: Handler<Self, Message = Message, State = (), Returned = anyhow::Result<usize>>;
    /// With a fingerprint, a time and a stored result, which is the amount.
    type Detailed: Handler<Self, Message = Detailed, State = (), Returned = anyhow::Result<i64>>;
    /// Takes the new messages of a batch at once: writes an effect for each, or fails if one of them is to.
    type All: Handler<Self, Message = Message, State = Slices, Returned = anyhow::Result<()>>;
    /// Has an effect outside the database.
    type Outside: Handler<Self, Message = Message, State = (), Returned = anyhow::Result<usize>>;
}

macro_rules! batches {
    ($module:ident, $store:ty, $each:literal, $detailed:literal, $all:literal, $outside:literal) => {
        mod $module {
            use idem_runtime::idempotent;
            use sqlx::Transaction;

            use super::{Batches, Detailed, Message, Slices, TestStore};
            use crate::{Step, perform};

            type Tx<'c> = Transaction<'c, $store>;

            #[idempotent(key(msg.id), retention = "7d", name = $each)]
            pub async fn each(tx: &mut Tx<'_>, msg: &Message) -> anyhow::Result<usize> {
                perform::apply_in(tx, msg).await
            }

            #[idempotent(
                                                key(msg.id),
                                                retention = "7d",
                                                fingerprint(msg.cents),
                                                occurred_at = msg.at,
                                                replay,
                                                name = $detailed
                                            )]
            pub async fn detailed(tx: &mut Tx<'_>, msg: &Detailed) -> anyhow::Result<i64> {
                <$store>::run(tx, &format!("INSERT INTO effect (note) VALUES ('{}')", msg.id)).await?;
                Ok(msg.cents)
            }

            #[idempotent(key(msg.id), retention = "7d", batch = all_of_them, name = $all)]
            pub async fn all(tx: &mut Tx<'_>, msg: &Message, slices: &Slices) -> anyhow::Result<()> {
                all_of_them(tx, &[msg], slices).await
            }

            async fn all_of_them(tx: &mut Tx<'_>, msgs: &[&Message], slices: &Slices) -> anyhow::Result<()> {
                slices.lock().unwrap().push(msgs.iter().map(|msg| msg.id.clone()).collect());
                for msg in msgs {
                    perform::apply_in(tx, msg).await?;
                }
                let values: Vec<_> = msgs.iter().map(|msg| format!("('{}')", msg.id)).collect();
                <$store>::run(tx, &format!("INSERT INTO effect (note) VALUES {}", values.join(","))).await?;
                Ok(())
            }

            #[idempotent(
                                                key(msg.id),
                                                retention = "7d",
                                                external(provider = "smtp", guard = none, risk = "a second letter"),
                                                name = $outside
                                            )]
            pub async fn outside(tx: &mut Tx<'_>, msg: &Message) -> anyhow::Result<usize> {
                anyhow::ensure!(msg.steps.iter().all(|step| !matches!(step, Step::Say(_))), "no words");
                perform::apply_in(tx, msg).await
            }

            impl Batches for $store {
                type Each = each;
                type Detailed = detailed;
                type All = all;
                type Outside = outside;
            }
        }
    };
}

batches!(
    sqlite,
    sqlx::Sqlite,
    "batch.each.sqlite",
    "batch.detailed.sqlite",
    "batch.all.sqlite",
    "batch.outside.sqlite"
);
#[cfg(feature = "databases")]
batches!(postgres, sqlx::Postgres, "batch.each.pg", "batch.detailed.pg", "batch.all.pg", "batch.outside.pg");
#[cfg(feature = "databases")]
batches!(mysql, sqlx::MySql, "batch.each.mysql", "batch.detailed.mysql", "batch.all.mysql", "batch.outside.mysql");
