//! Webhook deliveries go through a topic of Kafka, and credit accounts once each.
//!
//! ```text
//! cargo run --example consume_kafka --features kafka                                  # the broker at 127.0.0.1:9092
//! cargo run --example consume_kafka --features kafka -- --db credits.db --crash 100   # dies after a commit, before its acknowledgement
//! cargo run --example consume_kafka --features kafka -- --db credits.db               # goes on: the figures are the same
//! ```
//!
//! `IDEM_TEST_KAFKA_URL` names another broker.

#[path = "consume/mod.rs"]
mod consume;

use std::process::ExitCode;
use std::time::Duration;

use consume::{Broker, Stop, stopped};
use idem_runtime::{Engine, Incoming, Kafka};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{FutureProducer, FutureRecord};
use sqlx::Sqlite;

struct InATopic {
    servers: String,
    topic: String,
    producer: FutureProducer,
}

impl Broker for InATopic {
    type Adapter = Kafka;

    async fn open(_: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop> {
        let servers = std::env::var("IDEM_TEST_KAFKA_URL").unwrap_or_else(|_| "127.0.0.1:9092".to_owned());
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &servers).set("enable.idempotence", "true").set("message.timeout.ms", "30000");
        let admin: AdminClient<DefaultClientContext> =
            config.create().map_err(stopped("Kafka's client was not made"))?;
        let dead = format!("{queue}.dead");
        let topics =
            [(queue, 4), (&dead, 1)].map(|(name, parts)| NewTopic::new(name, parts, TopicReplication::Fixed(1)));
        let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(10)));
        let created = admin.create_topics(&topics, &options).await;
        for topic in created.map_err(stopped(format_args!("the topics were not created at {servers}")))? {
            if let Err((name, code)) = topic.or_else(|(name, code)| match code {
                RDKafkaErrorCode::TopicAlreadyExists => Ok(name),
                code => Err((name, code)),
            }) {
                return Err(Stop::new(format_args!("the topic {name} was not created: {code}")));
            }
        }
        let producer = config.create().map_err(stopped("Kafka's client was not made"))?;
        Ok(Self { servers, topic: queue.to_owned(), producer })
    }

    async fn publish(&self, message: &Incoming) -> Result<(), Stop> {
        // Without a key there is no order, and the consumer needs none.
        let record = FutureRecord::<(), _>::to(&self.topic).payload(&message.body);
        match self.producer.send(record, Duration::from_secs(10)).await {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(stopped("the message was not sent")(error)),
        }
    }

    fn adapter(self) -> Kafka {
        // Short, so that the run after a crash does not wait long for the partitions of the dead process.
        let group = format!("{}.credits", self.topic);
        Kafka::new(self.servers, group, self.topic)
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "1000")
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    consume::main::<InATopic>().await
}
