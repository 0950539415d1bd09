//! Webhook deliveries go through a stream of Redis, and credit accounts once each.
//!
//! The server is that of `IDEM_TEST_REDIS_URL`, or `redis://127.0.0.1:6379`.
//!
//! ```text
//! cargo run --features redis --example consume_redis                                  # 179 deliveries of 140 events, then the figures
//! cargo run --features redis --example consume_redis -- --db credits.db --crash 100   # dies after a commit, before its acknowledgement
//! cargo run --features redis --example consume_redis -- --db credits.db               # goes on: the figures are the same
//! ```

#[path = "consume/mod.rs"]
mod consume;

use std::process::ExitCode;
use std::time::Duration;

use consume::{Broker, Stop, stopped};
use idem_runtime::{Engine, Incoming, RedisStream};
use redis::Client;
use redis::aio::MultiplexedConnection;
use sqlx::Sqlite;

struct InRedis {
    sender: MultiplexedConnection,
    url: String,
    stream: String,
}

impl Broker for InRedis {
    type Adapter = RedisStream;

    async fn open(_: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop> {
        let url = std::env::var("IDEM_TEST_REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
        let client = Client::open(url.as_str()).map_err(stopped("the URL is none of Redis"))?;
        let sender = client.get_multiplexed_async_connection().await.map_err(stopped("Redis does not answer"))?;
        Ok(Self { sender, url, stream: queue.to_owned() })
    }

    async fn publish(&self, message: &Incoming) -> Result<(), Stop> {
        let mut add = redis::cmd("XADD");
        add.arg(&self.stream).arg("*").arg("body").arg(message.body.as_slice());
        add.query_async(&mut self.sender.clone()).await.map_err(stopped("the message was not added to the stream"))
    }

    fn adapter(self) -> RedisStream {
        // A short lease, so that the run after a crash does not wait long for what the dead process held.
        RedisStream::new(self.url, self.stream, "credit-account").create_group().lease(Duration::from_secs(2))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    consume::main::<InRedis>().await
}
