//! Webhook deliveries go through RabbitMQ, and credit accounts once each.
//!
//! ```text
//! cargo run --features idem-examples/rabbitmq --example consume_rabbitmq    # 179 deliveries of 140 events, then the figures
//! … -- --db credits.db --crash 100   # dies after a commit, before its acknowledgement
//! … -- --db credits.db               # goes on: the figures are the same
//! ```
//!
//! RabbitMQ is where `IDEM_TEST_RABBITMQ_URL` says, or on this machine, as it comes.

#[path = "consume/mod.rs"]
mod consume;

use std::process::ExitCode;

use consume::{Broker, Stop, stopped};
use idem_runtime::{Engine, Incoming, RabbitMq};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use sqlx::Sqlite;

const HERE: &str = "amqp://guest:guest@127.0.0.1:5672/%2f";

struct InRabbitMq {
    url: String,
    queue: String,
    channel: Channel,
}

impl Broker for InRabbitMq {
    type Adapter = RabbitMq;

    async fn open(_: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop> {
        let url = std::env::var("IDEM_TEST_RABBITMQ_URL").unwrap_or_else(|_| HERE.to_owned());
        let opening = async {
            let connection = Connection::connect(&url, ConnectionProperties::default()).await?;
            let channel = connection.create_channel().await?;
            // Durable, so that a restart of RabbitMQ keeps what is persistent in it.
            channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), FieldTable::default()).await?;
            // From here on RabbitMQ says when it has a message.
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok::<_, lapin::Error>(channel)
        };
        let channel =
            opening.await.map_err(stopped("RabbitMQ cannot be used; IDEM_TEST_RABBITMQ_URL says where it is"))?;
        Ok(Self { url, queue: queue.to_owned(), channel })
    }

    async fn publish(&self, message: &Incoming) -> Result<(), Stop> {
        let (queue, persistent) = (self.queue.as_str().into(), BasicProperties::default().with_delivery_mode(2));
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let publishing = async {
            let published = self.channel.basic_publish("".into(), queue, options, &message.body, persistent).await?;
            published.await
        };
        let answer = publishing.await.map_err(stopped("the message was not sent"))?;
        match answer.is_ack() && answer.take_message().is_none() {
            true => Ok(()),
            false => Err(Stop::new("RabbitMQ did not take the message")),
        }
    }

    fn adapter(self) -> RabbitMq {
        RabbitMq::new(self.url, self.queue)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    consume::main::<InRabbitMq>().await
}
