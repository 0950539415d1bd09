//! NATS JetStream: a stream and a durable consumer for each test.

mod deliveries;
mod server;
mod settings;

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{Context, stream};
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use futures_util::StreamExt;
use idem_runtime::{Incoming, NatsJetStream};
use uuid::Uuid;

use super::TestBroker;
use server::Server;

super::behaves!(script, super::InNats);

/// The durable consumer of each stream.
const CONSUMER: &str = "handlers";

pub(crate) struct InNats {
    url: String,
    stream: String,
    jetstream: Context,
    /// A server of the test's own, where it may be killed.
    server: Option<Server>,
}

impl InNats {
    /// On the server that all tests share.
    async fn shared(lease: Duration) -> Self {
        let url = std::env::var("IDEM_TEST_NATS_URL");
        let url = url.unwrap_or_else(|_| panic!("IDEM_TEST_NATS_URL is not set: run `tests/run`"));
        Self::on(url, None, lease).await
    }

    async fn alone(lease: Duration) -> Self {
        let server = Server::start("# The defaults.").await;
        Self::on(server.url(), Some(server), lease).await
    }

    async fn on(url: String, server: Option<Server>, lease: Duration) -> Self {
        let jetstream = async_nats::jetstream::new(async_nats::connect(&url).await.unwrap());
        let stream = format!("idem-test-{}", Uuid::new_v4().simple());
        let broker = Self { url, stream, jetstream, server };
        broker.create_stream(stream::Config::default()).await;
        broker.create_consumer(pull::Config { ack_wait: lease, ..Default::default() }).await;
        broker
    }

    async fn create_stream(&self, config: stream::Config) {
        let config = stream::Config { name: self.stream.clone(), subjects: vec![self.subject()], ..config };
        self.jetstream.create_stream(config).await.unwrap();
    }

    /// As the adapter wants it, but for what the test says. The acknowledgement is the test's too.
    async fn create_consumer(&self, config: pull::Config) {
        let config = pull::Config { durable_name: Some(CONSUMER.to_owned()), ..config };
        self.jetstream.create_consumer_on_stream(config, &self.stream).await.unwrap();
    }

    async fn delete_consumer(&self) {
        self.jetstream.delete_consumer_from_stream(CONSUMER, &self.stream).await.unwrap();
    }

    fn subject(&self) -> String {
        format!("{}.events", self.stream)
    }

    async fn info(&self) -> async_nats::jetstream::consumer::Info {
        let consumer = self.jetstream.get_consumer_from_stream::<pull::Config, _, _>(CONSUMER, &self.stream).await;
        consumer.unwrap().cached_info().clone()
    }

    /// The dead letters as they are stored.
    async fn parked(&self) -> Vec<async_nats::Message> {
        let Ok(stream) = self.jetstream.get_stream(format!("{}_dead", self.stream)).await else { return Vec::new() };
        let number = usize::try_from(stream.cached_info().state.messages).unwrap();
        let reader = pull::Config { ack_policy: AckPolicy::None, ..Default::default() };
        let reader = stream.create_consumer(reader).await.unwrap();
        let letters = reader.fetch().max_messages(number.max(1)).messages().await.unwrap();
        letters.map(|letter| letter.unwrap().message).collect().await
    }
}

impl TestBroker for InNats {
    type Adapter = NatsJetStream;
    const SERVICE: &'static str = "nats";
    const LEASE: Duration = Duration::from_secs(1);
    /// The server takes a MiB, with the headers.
    const LARGEST: usize = 1_000_000;

    async fn create(lease: Duration) -> Self {
        // Only the tests with a short lease have outages.
        if lease <= Self::LEASE { Self::alone(lease).await } else { Self::shared(lease).await }
    }

    fn adapter(&self) -> NatsJetStream {
        NatsJetStream::new(&self.url, &self.stream, CONSUMER)
    }

    async fn publish(&self, messages: Vec<Incoming>) {
        for some in messages.chunks(500) {
            let mut stored = Vec::new();
            for message in some {
                let mut headers = HeaderMap::new();
                for (name, value) in &message.headers {
                    headers.insert(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
                }
                let published =
                    self.jetstream.publish_with_headers(self.subject(), headers, message.body.clone().into()).await;
                stored.push(published.unwrap().into_future());
            }
            futures_util::future::try_join_all(stored).await.unwrap();
        }
    }

    async fn unsettled(&self) -> u64 {
        let info = self.info().await;
        info.num_pending + u64::try_from(info.num_ack_pending).unwrap()
    }

    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)> {
        let reason = |letter: &async_nats::Message| {
            letter.headers.as_ref().unwrap().get("idem-reason").unwrap().as_str().to_owned()
        };
        self.parked().await.iter().map(|letter| (letter.payload.to_vec(), reason(letter))).collect()
    }

    /// Kills the server, and starts it again on what it has stored.
    async fn outage(&self, length: Duration) {
        let server = self.server.as_ref().unwrap();
        server.kill().await;
        tokio::time::sleep(length).await;
        server.start_again().await;
        // The test's own client finds it after a pause.
        while self.jetstream.get_stream(&self.stream).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn unknown(&self) -> Option<NatsJetStream> {
        Some(NatsJetStream::new(&self.url, "idem-test-unknown", CONSUMER))
    }

    fn nowhere(&self) -> NatsJetStream {
        NatsJetStream::new("nats://127.0.0.1:1", &self.stream, CONSUMER)
    }

    async fn destroy(self) {
        self.jetstream.delete_stream(&self.stream).await.unwrap();
        // Not there if nobody connected.
        drop(self.jetstream.delete_stream(format!("{}_dead", self.stream)).await);
    }
}
