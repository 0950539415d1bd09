//! RabbitMQ: classic queues, quorum queues, and a node that is killed.

mod node;
mod own;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Incoming, RabbitMq};
use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Queue};
use uuid::Uuid;

use super::TestBroker;
use node::Node;

super::behaves!(script, super::InRabbitMq<false, false>:
    ten_thousand_deliveries_are_applied_once
    consumers_come_and_go_with_deliveries_in_flight
    a_stop_gives_back_what_it_does_not_end
    what_is_stuck_is_rolled_back_and_given_back
    a_handler_slower_than_the_lease_keeps_its_delivery
    what_cannot_be_handled_becomes_a_dead_letter
    at_most_once_is_acknowledged_before_it_runs
    what_waits_is_told
    what_is_not_there_is_said_at_the_start
);

super::behaves!(quorum, super::InRabbitMq<true, false>:
    consumers_come_and_go_with_deliveries_in_flight
    a_stop_gives_back_what_it_does_not_end
    what_is_stuck_is_rolled_back_and_given_back
    what_cannot_be_handled_becomes_a_dead_letter
    at_most_once_is_acknowledged_before_it_runs
    what_waits_is_told
);

// On a node of the test's own, which is killed three times.
super::behaves!(killed, super::InRabbitMq<false, true>: an_outage_in_the_middle_loses_and_doubles_nothing);

/// A queue, by its type, on everybody's node or on one of its own.
pub(crate) struct InRabbitMq<const QUORUM: bool, const OWN: bool> {
    node: Arc<Node>,
    name: String,
}

impl<const QUORUM: bool, const OWN: bool> InRabbitMq<QUORUM, OWN> {
    async fn on(node: Arc<Node>) -> Self {
        let queue = Self { node, name: format!("idem-test-{}", Uuid::new_v4().simple()) };
        queue.declare().await;
        queue
    }

    async fn declare(&self) {
        let kind = if QUORUM { "quorum" } else { "classic" };
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), text(kind));
        let name = self.name.as_str().into();
        self.channel().await.1.queue_declare(name, QueueDeclareOptions::durable(), arguments).await.unwrap();
    }

    /// A connection that ends when it is dropped.
    async fn channel(&self) -> (Connection, Channel) {
        let connection = Connection::connect(&self.node.url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        (connection, channel)
    }

    async fn send(&self, messages: impl IntoIterator<Item = (Vec<u8>, BasicProperties)>) {
        let (_connection, channel) = self.channel().await;
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let mut confirms = Vec::new();
        for (body, properties) in messages {
            let properties = properties.with_delivery_mode(2);
            let name = self.name.as_str().into();
            confirms.push(channel.basic_publish("".into(), name, options, &body, properties).await.unwrap());
        }
        for confirm in confirms {
            assert_eq!(confirm.await.unwrap(), Confirmation::Ack(None));
        }
    }

    /// How many messages are ready and how many consumers there are, unless the queue is not there.
    async fn look(&self, queue: &str) -> Option<Queue> {
        let passive = QueueDeclareOptions::default().passive();
        self.channel().await.1.queue_declare(queue.into(), passive, FieldTable::default()).await.ok()
    }

    fn dead(&self) -> String {
        format!("{}.dead", self.name)
    }

    /// They stay where they are.
    async fn parked(&self) -> Vec<BasicGetMessage> {
        let mut parked = Vec::new();
        if self.look(&self.dead()).await.is_some() {
            let (connection, channel) = self.channel().await;
            let get = || channel.basic_get(self.dead().into(), BasicGetOptions::default());
            while let Some(dead) = get().await.unwrap() {
                parked.push(dead);
            }
            connection.close(200, "".into()).await.unwrap();
        }
        parked
    }

    async fn delete(&self, queue: &str) {
        self.channel().await.1.queue_delete(queue.into(), QueueDeleteOptions::default()).await.unwrap();
    }
}

impl<const QUORUM: bool, const OWN: bool> TestBroker for InRabbitMq<QUORUM, OWN> {
    type Adapter = RabbitMq;
    const SERVICE: &'static str = "rabbitmq";
    /// There is none while the channel lives.
    const LEASE: Duration = Duration::from_secs(1);
    const LARGEST: usize = 10_000_000;

    async fn create(_: Duration) -> Self {
        let node = if OWN { Node::own("").await } else { Node::shared() };
        Self::on(Arc::new(node)).await
    }

    fn adapter(&self) -> RabbitMq {
        RabbitMq::new(&self.node.url, &self.name)
    }

    async fn publish(&self, messages: Vec<Incoming>) {
        let message = |message: Incoming| {
            let mut headers = FieldTable::default();
            for (name, value) in message.headers {
                headers.insert(name.into(), text(&value));
            }
            (message.body, BasicProperties::default().with_headers(headers))
        };
        self.send(messages.into_iter().map(message)).await;
    }

    async fn unsettled(&self) -> u64 {
        match self.look(&self.name).await {
            // Nobody has any.
            Some(queue) if queue.consumer_count() == 0 => queue.message_count().into(),
            _ => self.node.messages(&self.name),
        }
    }

    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)> {
        let reason = |dead: &BasicGetMessage| header(&dead.properties, "x-idem-reason").unwrap();
        self.parked().await.into_iter().map(|dead| (dead.data.clone(), reason(&dead))).collect()
    }

    async fn outage(&self, length: Duration) {
        self.node.restart(length).await;
    }

    fn unknown(&self) -> Option<RabbitMq> {
        Some(RabbitMq::new(&self.node.url, format!("{}.unknown", self.name)))
    }

    fn nowhere(&self) -> RabbitMq {
        RabbitMq::new("amqp://guest:guest@127.0.0.1:1/%2f", &self.name)
    }

    async fn destroy(self) {
        self.delete(&self.name).await;
        self.delete(&self.dead()).await;
    }
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(text))
}

fn header(properties: &BasicProperties, name: &str) -> Option<String> {
    match properties.headers().as_ref()?.inner().get(name)? {
        AMQPValue::LongString(text) => Some(text.to_string()),
        other => panic!("{name}: {other:?}"),
    }
}
