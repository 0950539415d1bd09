//! The brokers, each with the loop that its client's documentation shows.

use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream;
use futures_util::StreamExt;
use idem_runtime::{DatabaseQueue, Incoming, NatsJetStream, RabbitMq, RedisStream};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, Message};
use redis::AsyncCommands;
use redis::streams::{StreamReadOptions, StreamReadReply};
use sqlx::{Pool, Postgres, Row};

use crate::ways::{Bench, by_hand};

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: eval \"$(tests/run --services-only)\""))
}

fn name() -> String {
    format!("idem-bench-{}", uuid::Uuid::new_v4().simple())
}

/// The database itself.
pub(crate) struct Queue(DatabaseQueue<Postgres>);

impl Bench for Queue {
    type Adapter = DatabaseQueue<Postgres>;
    const NAME: &'static str = "database";

    async fn create(pool: &Pool<Postgres>) -> Self {
        Self(DatabaseQueue::new(pool, "bench").poll(Duration::from_millis(10)))
    }

    fn adapter(&self) -> Self::Adapter {
        self.0.clone()
    }

    async fn publish(&self, bodies: Vec<Vec<u8>>) {
        for body in bodies {
            self.0.enqueue(&Incoming::new(body)).await.unwrap();
        }
    }

    async fn bare(&self, many: usize, pool: &Pool<Postgres>) {
        let take = "UPDATE idem_queue SET visible_at = now() + interval '30 s' WHERE id = ( \
                    SELECT id FROM idem_queue WHERE queue = 'bench' AND dead_at IS NULL AND visible_at <= now() \
                    ORDER BY visible_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, body";
        for _ in 0..many {
            let row = sqlx::query(take).fetch_one(pool).await.unwrap();
            by_hand(pool, row.get(1)).await;
            let delete = "DELETE FROM idem_queue WHERE id = $1";
            sqlx::query(delete).bind(row.get::<i64, _>(0)).execute(pool).await.unwrap();
        }
    }
}

pub(crate) struct Rabbit {
    channel: Channel,
    queue: String,
    connection: Connection,
}

impl Bench for Rabbit {
    type Adapter = RabbitMq;
    const NAME: &'static str = "rabbitmq";

    async fn create(_: &Pool<Postgres>) -> Self {
        let url = env("IDEM_TEST_RABBITMQ_URL");
        let connection = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        let queue = name();
        let durable = QueueDeclareOptions { durable: true, ..Default::default() };
        channel.queue_declare(queue.as_str().into(), durable, FieldTable::default()).await.unwrap();
        Self { channel, queue, connection }
    }

    fn adapter(&self) -> RabbitMq {
        RabbitMq::new(env("IDEM_TEST_RABBITMQ_URL"), self.queue.as_str())
    }

    async fn publish(&self, bodies: Vec<Vec<u8>>) {
        for body in bodies {
            let properties = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions::default();
            let queue = self.queue.as_str().into();
            self.channel.basic_publish("".into(), queue, options, &body, properties).await.unwrap().await.unwrap();
        }
    }

    async fn bare(&self, many: usize, pool: &Pool<Postgres>) {
        let channel = self.connection.create_channel().await.unwrap();
        channel.basic_qos(10, BasicQosOptions::default()).await.unwrap();
        let options = BasicConsumeOptions::default();
        let consuming = channel.basic_consume(self.queue.as_str().into(), "".into(), options, FieldTable::default());
        let mut consumer = consuming.await.unwrap();
        for _ in 0..many {
            let delivery = consumer.next().await.unwrap().unwrap();
            by_hand(pool, &delivery.data).await;
            delivery.ack(BasicAckOptions::default()).await.unwrap();
        }
        channel.close(200, "done".into()).await.unwrap();
    }

    async fn destroy(self) {
        for queue in [self.queue.clone(), format!("{}.dead", self.queue)] {
            drop(self.channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await);
        }
    }
}

pub(crate) struct Nats {
    jetstream: async_nats::jetstream::Context,
    stream: String,
}

impl Bench for Nats {
    type Adapter = NatsJetStream;
    const NAME: &'static str = "nats";

    async fn create(_: &Pool<Postgres>) -> Self {
        let jetstream = async_nats::jetstream::new(async_nats::connect(env("IDEM_TEST_NATS_URL")).await.unwrap());
        let name = name();
        let config =
            stream::Config { subjects: vec![format!("{name}.sent")], name: name.clone(), ..Default::default() };
        let stream = jetstream.create_stream(config).await.unwrap();
        let consumer = pull::Config { durable_name: Some("bench".to_owned()), ..Default::default() };
        stream.create_consumer(consumer).await.unwrap();
        Self { jetstream, stream: name }
    }

    fn adapter(&self) -> NatsJetStream {
        NatsJetStream::new(env("IDEM_TEST_NATS_URL"), self.stream.as_str(), "bench")
    }

    async fn publish(&self, bodies: Vec<Vec<u8>>) {
        for body in bodies {
            self.jetstream.publish(format!("{}.sent", self.stream), body.into()).await.unwrap().await.unwrap();
        }
    }

    async fn bare(&self, many: usize, pool: &Pool<Postgres>) {
        let consumer: async_nats::jetstream::consumer::PullConsumer =
            self.jetstream.get_consumer_from_stream("bench", self.stream.as_str()).await.unwrap();
        // Exactly so many: a stream of messages would keep some for a later turn of another way.
        let mut messages = consumer.batch().max_messages(many).messages().await.unwrap();
        for _ in 0..many {
            let message = messages.next().await.unwrap().unwrap();
            by_hand(pool, &message.payload).await;
            message.ack().await.unwrap();
        }
    }

    async fn destroy(self) {
        for stream in [self.stream.clone(), format!("{}_dead", self.stream)] {
            drop(self.jetstream.delete_stream(stream).await);
        }
    }
}

pub(crate) struct Redis {
    connection: redis::aio::MultiplexedConnection,
    stream: String,
}

impl Bench for Redis {
    type Adapter = RedisStream;
    const NAME: &'static str = "redis";

    async fn create(_: &Pool<Postgres>) -> Self {
        let client = redis::Client::open(env("IDEM_TEST_REDIS_URL")).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let stream = name();
        let () = connection.xgroup_create_mkstream(&stream, "bench", "0").await.unwrap();
        Self { connection, stream }
    }

    fn adapter(&self) -> RedisStream {
        RedisStream::new(env("IDEM_TEST_REDIS_URL"), self.stream.as_str(), "bench")
    }

    async fn publish(&self, bodies: Vec<Vec<u8>>) {
        for body in bodies {
            let () = self.connection.clone().xadd(&self.stream, "*", &[("body", body)]).await.unwrap();
        }
    }

    async fn bare(&self, many: usize, pool: &Pool<Postgres>) {
        let mut connection = self.connection.clone();
        let mut left = many;
        while left > 0 {
            let options = StreamReadOptions::default().group("bench", "bare").count(left.min(10));
            let read: StreamReadReply = connection.xread_options(&[&self.stream], &[">"], &options).await.unwrap();
            for entry in read.keys.into_iter().flat_map(|key| key.ids) {
                let body: Vec<u8> = entry.get("body").unwrap();
                by_hand(pool, &body).await;
                let () = connection.xack(&self.stream, "bench", &[entry.id]).await.unwrap();
                left -= 1;
            }
        }
    }

    async fn destroy(self) {
        let () = self.connection.clone().del(&[self.stream.clone(), format!("{}:dead", self.stream)]).await.unwrap();
    }
}

pub(crate) struct Kafka {
    topic: String,
    producer: FutureProducer,
}

fn client() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", env("IDEM_TEST_KAFKA_URL"));
    config
}

impl Bench for Kafka {
    type Adapter = idem_runtime::Kafka;
    const NAME: &'static str = "kafka";

    async fn create(_: &Pool<Postgres>) -> Self {
        let topic = name();
        let admin: AdminClient<DefaultClientContext> = client().create().unwrap();
        let dead = format!("{topic}.dead");
        let topics = [&topic, &dead].map(|topic| NewTopic::new(topic, 1, TopicReplication::Fixed(1)));
        admin.create_topics(&topics, &AdminOptions::new()).await.unwrap();
        Self { topic, producer: client().create().unwrap() }
    }

    fn adapter(&self) -> idem_runtime::Kafka {
        idem_runtime::Kafka::new(env("IDEM_TEST_KAFKA_URL"), "bench", self.topic.as_str())
            .set("session.timeout.ms", "6000")
    }

    async fn publish(&self, bodies: Vec<Vec<u8>>) {
        let sent = bodies.iter().map(|body| {
            // A key of its own, as an event's id is.
            let record = FutureRecord::to(&self.topic).key(body).payload(body);
            self.producer.send(record, Duration::from_secs(10))
        });
        for sent in futures_util::future::join_all(sent).await {
            sent.unwrap();
        }
    }

    async fn bare(&self, many: usize, pool: &Pool<Postgres>) {
        let mut config = client();
        config.set("group.id", "bench").set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
        config.set("session.timeout.ms", "6000");
        let consumer: StreamConsumer = config.create().unwrap();
        consumer.subscribe(&[&self.topic]).unwrap();
        for _ in 0..many {
            let record = consumer.recv().await.unwrap();
            by_hand(pool, record.payload().unwrap()).await;
            consumer.commit_message(&record, CommitMode::Async).unwrap();
        }
        consumer.commit_consumer_state(CommitMode::Sync).unwrap();
    }
}
