//! Webhook deliveries go through a queue in the database itself, and credit accounts once each.
//!
//! ```text
//! cargo run --example consume_database                                  # 179 deliveries of 140 events, then the figures
//! cargo run --example consume_database -- --db credits.db --crash 100   # dies after a commit, before its acknowledgement
//! cargo run --example consume_database -- --db credits.db               # goes on: the figures are the same
//! ```

#[path = "consume/mod.rs"]
mod consume;

use std::process::ExitCode;
use std::time::Duration;

use consume::{Broker, Stop, stopped};
use idem_runtime::{DatabaseQueue, Engine, Incoming};
use sqlx::Sqlite;

struct InTheDatabase(DatabaseQueue<Sqlite>);

impl Broker for InTheDatabase {
    type Adapter = DatabaseQueue<Sqlite>;

    async fn open(engine: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop> {
        // Short, so that the run after a crash does not wait long for what the dead process held.
        Ok(Self(DatabaseQueue::new(engine.pool(), queue).lease(Duration::from_secs(2))))
    }

    async fn publish(&self, message: &Incoming) -> Result<(), Stop> {
        self.0.enqueue(message).await.map_err(stopped("the message was not enqueued"))
    }

    fn adapter(self) -> DatabaseQueue<Sqlite> {
        self.0
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    consume::main::<InTheDatabase>().await
}
