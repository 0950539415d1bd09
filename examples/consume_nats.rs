//! Webhook deliveries go through NATS JetStream, and credit accounts once each.
//!
//! ```text
//! export IDEM_TEST_NATS_URL=nats://127.0.0.1:4222                                 # which is the default; the server runs with `-js`
//! cargo run --features nats --example consume_nats                                  # 179 deliveries of 140 events, then the figures
//! cargo run --features nats --example consume_nats -- --db credits.db --crash 100   # dies after a commit, before its acknowledgement
//! cargo run --features nats --example consume_nats -- --db credits.db               # goes on: the figures are the same
//! ```

#[path = "consume/mod.rs"]
mod consume;

use std::process::ExitCode;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{Context, stream};
use consume::{Broker, Stop, stopped};
use idem_runtime::{Engine, Incoming, NatsJetStream};
use sqlx::Sqlite;

/// The name of the durable consumer.
const CONSUMER: &str = "credit-account";

struct InNats {
    url: String,
    stream: String,
    jetstream: Context,
}

impl Broker for InNats {
    type Adapter = NatsJetStream;

    async fn open(_: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop> {
        let url = std::env::var("IDEM_TEST_NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
        let opening = async {
            let jetstream = async_nats::jetstream::new(async_nats::connect(&url).await?);
            let config =
                stream::Config { name: queue.to_owned(), subjects: vec![subject(queue)], ..Default::default() };
            let stream = jetstream.get_or_create_stream(config).await?;
            let consumer = pull::Config {
                durable_name: Some(CONSUMER.to_owned()),
                ack_policy: AckPolicy::Explicit,
                // Short, so that the run after a crash does not wait long for what the dead process held.
                ack_wait: Duration::from_secs(2),
                ..Default::default()
            };
            stream.get_or_create_consumer(CONSUMER, consumer).await?;
            Ok::<_, Box<dyn std::error::Error>>(jetstream)
        };
        let jetstream = opening.await.map_err(stopped("NATS cannot be used; IDEM_TEST_NATS_URL says where it is"))?;
        Ok(Self { url, stream: queue.to_owned(), jetstream })
    }

    async fn publish(&self, message: &Incoming) -> Result<(), Stop> {
        let publishing =
            async { self.jetstream.publish(subject(&self.stream), message.body.clone().into()).await?.await };
        publishing.await.map(drop).map_err(stopped("the message was not sent"))
    }

    fn adapter(self) -> NatsJetStream {
        NatsJetStream::new(self.url, self.stream, CONSUMER)
    }
}

fn subject(stream: &str) -> String {
    format!("{stream}.delivered")
}

#[tokio::main]
async fn main() -> ExitCode {
    consume::main::<InNats>().await
}
