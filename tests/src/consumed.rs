//! Handlers as consumers run them: by type, with a message that travels as JSON.

#![allow(unreachable_pub, reason = "an associated type may not be more private than its trait")]

use std::collections::HashMap;
use std::sync::Mutex;

use idem_runtime::{Handler, Incoming, at_most_once};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::TestStore;

/// An event, and how its handling goes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Wire {
    pub id: String,
    /// As many runs fail before one succeeds.
    #[serde(default)]
    pub fails: u32,
    /// Whether a run waits until the gate is opened for it.
    #[serde(default)]
    pub waits: bool,
}

impl Wire {
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    pub fn failing(id: impl Into<String>, fails: u32) -> Self {
        Self { fails, ..Self::new(id) }
    }

    pub fn waiting(id: impl Into<String>) -> Self {
        Self { waits: true, ..Self::new(id) }
    }

    pub fn message(&self) -> Incoming {
        Incoming::new(serde_json::to_vec(self).unwrap())
    }
}

/// What the test sees of its handlers, and holds them up with.
#[derive(Debug)]
pub struct Gate {
    runs: Mutex<HashMap<String, u32>>,
    /// A permit for each run that has written its effect and waits.
    pub reached: Semaphore,
    /// A permit lets one of them go on.
    pub open: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { runs: Mutex::default(), reached: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

impl Gate {
    /// How often an event's handler has begun.
    pub fn runs(&self, id: &str) -> u32 {
        self.runs.lock().unwrap().get(id).copied().unwrap_or(0)
    }

    async fn pass(&self, msg: &Wire) -> anyhow::Result<()> {
        let run = {
            let mut runs = self.runs.lock().unwrap();
            let run = runs.entry(msg.id.clone()).or_default();
            *run += 1;
            *run
        };
        if msg.waits {
            self.reached.add_permits(1);
            self.open.acquire().await?.forget();
        }
        anyhow::ensure!(run > msg.fails, "run {run} of {} fails, as told", msg.id);
        Ok(())
    }
}

/// A store with handlers of its own.
pub trait Consumes: TestStore {
    /// Writes an effect with the event's id.
    type Apply: Handler<Self, Message = Wire, State = Gate, Returned = anyhow::Result<()>> + 'static;
    /// Writes another one, `second`, and does not fail.
    type Second: Handler<Self, Message = Wire, State = Gate, Returned = anyhow::Result<()>> + 'static;
    /// Writes none.
    type Tell: Handler<Self, Message = Wire, State = Gate, Returned = anyhow::Result<()>> + 'static;
}

#[at_most_once(reason = "the tests want to lose it", loss = "what the message says", name = "tests.tell")]
pub async fn tell(msg: &Wire, gate: &Gate) -> anyhow::Result<()> {
    gate.pass(msg).await
}

macro_rules! consumes {
    ($module:ident, $store:ty, $apply:literal, $second:literal) => {
        mod $module {
            use idem_runtime::idempotent;
            use sqlx::Transaction;

            use super::{Consumes, Gate, TestStore, Wire};

            #[idempotent(key(msg.id), retention = "7d", redelivery(broker = "1d"), name = $apply)]
            pub async fn apply(tx: &mut Transaction<'_, $store>, msg: &Wire, gate: &Gate) -> anyhow::Result<()> {
                <$store>::run(tx, &format!("INSERT INTO effect (note) VALUES ('{}')", msg.id)).await?;
                gate.pass(msg).await
            }

            #[idempotent(key(msg.id), retention = "7d", name = $second)]
            pub async fn second(tx: &mut Transaction<'_, $store>, msg: &Wire, _gate: &Gate) -> anyhow::Result<()> {
                <$store>::run(tx, &format!("INSERT INTO effect (note) VALUES ('second {}')", msg.id)).await?;
                Ok(())
            }

            impl Consumes for $store {
                type Apply = apply;
                type Second = second;
                type Tell = super::tell;
            }
        }
    };
}

consumes!(sqlite, sqlx::Sqlite, "tests.apply.sqlite", "tests.second.sqlite");
#[cfg(feature = "databases")]
consumes!(postgres, sqlx::Postgres, "tests.apply.postgres", "tests.second.postgres");
#[cfg(feature = "databases")]
consumes!(mysql, sqlx::MySql, "tests.apply.mysql", "tests.second.mysql");
