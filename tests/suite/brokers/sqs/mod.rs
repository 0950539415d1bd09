//! SQS, standard and FIFO, on an emulator whose address is in `IDEM_TEST_SQS_URL`.

mod connect;
mod deliveries;
mod proxy;

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_sqs::types::{Message, MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use idem_runtime::{Incoming, Sqs};
use idem_tests::Wire;
use uuid::Uuid;

use super::TestBroker;
use proxy::Proxy;

super::behaves!(standard, super::Queue<false>);
super::behaves!(fifo, super::Queue<true>);

/// Two queues, the second for dead letters.
pub(crate) struct Queue<const FIFO: bool> {
    judge: Client,
    proxy: Proxy,
    url: String,
    dead: String,
}

fn endpoint() -> String {
    std::env::var("IDEM_TEST_SQS_URL")
        .unwrap_or_else(|_| panic!("IDEM_TEST_SQS_URL is not set: run `tests/run`, which finds or starts the server"))
}

fn config(endpoint: &str) -> aws_sdk_sqs::config::Builder {
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(endpoint)
}

fn client(endpoint: &str) -> Client {
    Client::from_conf(config(endpoint).build())
}

fn text(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
}

impl<const FIFO: bool> Queue<FIFO> {
    fn name(what: &str) -> String {
        let end = if FIFO { ".fifo" } else { "" };
        format!("idem-test-{}{what}{end}", Uuid::new_v4().simple())
    }

    async fn make(judge: &Client, what: &str, attributes: &[(QueueAttributeName, String)]) -> String {
        let mut create = judge.create_queue().queue_name(Self::name(what));
        if FIFO {
            create = create.attributes(QueueAttributeName::FifoQueue, "true");
        }
        for (name, value) in attributes {
            create = create.attributes(name.clone(), value);
        }
        Box::pin(create.send()).await.unwrap().queue_url.unwrap()
    }

    async fn set(&self, url: &str, name: QueueAttributeName, value: &str) {
        Box::pin(self.judge.set_queue_attributes().queue_url(url).attributes(name, value).send()).await.unwrap();
    }

    /// The adapter, of a client that the test sets up.
    fn by(&self, client: Client) -> Sqs {
        Sqs::new(client, &self.url).wait(Duration::from_secs(1))
    }

    async fn send(&self, body: &str, attributes: &[(&str, MessageAttributeValue)], group: &str, dedup: &str) {
        let mut send = self.judge.send_message().queue_url(&self.url).message_body(body);
        for (name, value) in attributes {
            send = send.message_attributes(*name, value.clone());
        }
        if FIFO {
            send = send.message_group_id(group).message_deduplication_id(dedup);
        }
        Box::pin(send.send()).await.unwrap();
    }

    /// What is in a queue, ten at most, without taking it.
    async fn look(&self, url: &str) -> Vec<Message> {
        let look = self.judge.receive_message().queue_url(url).max_number_of_messages(10).visibility_timeout(0);
        let look = look.message_attribute_names("All").message_system_attribute_names("All".into());
        Box::pin(look.send()).await.unwrap().messages.unwrap_or_default()
    }
}

impl<const FIFO: bool> TestBroker for Queue<FIFO> {
    type Adapter = Sqs;
    const SERVICE: &'static str = "sqs";
    const LEASE: Duration = Duration::from_secs(2);
    const LARGEST: usize = 250_000;
    /// A message a request takes its time.
    const MANY: u32 = if FIFO { 2_500 } else { 10_000 };
    /// The emulator looks through the whole queue at every request.
    const WAITING: usize = 2_000;

    fn carries(body: &[u8]) -> bool {
        !body.is_empty() && std::str::from_utf8(body).is_ok()
    }

    async fn create(lease: Duration) -> Self {
        let judge = client(&endpoint());
        let dead = Self::make(&judge, "-dead", &[]).await;
        let arn = judge.get_queue_attributes().queue_url(&dead).attribute_names(QueueAttributeName::QueueArn);
        let arn = Box::pin(arn.send()).await.unwrap().attributes.unwrap()[&QueueAttributeName::QueueArn].clone();
        let policy = format!(r#"{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1000}}"#);
        let attributes = [
            (QueueAttributeName::VisibilityTimeout, lease.as_secs().to_string()),
            (QueueAttributeName::RedrivePolicy, policy),
        ];
        let url = Self::make(&judge, "", &attributes).await;
        Self { judge, proxy: Proxy::start(&endpoint()).await, url, dead }
    }

    fn adapter(&self) -> Sqs {
        self.by(client(&self.proxy.url()))
    }

    async fn publish(&self, messages: Vec<Incoming>) {
        // Ten in a request, and no more than a request may hold.
        for ten in messages.chunk_by({
            let (mut number, mut size) = (0, 0);
            move |_, next| {
                (number, size) = (number + 1, size + next.body.len());
                let fits = number < 10 && size < 500_000;
                if !fits {
                    (number, size) = (0, next.body.len());
                }
                fits
            }
        }) {
            let mut send = self.judge.send_message_batch().queue_url(&self.url);
            for (place, message) in ten.iter().enumerate() {
                let body = std::str::from_utf8(&message.body).unwrap();
                let mut entry = SendMessageBatchRequestEntry::builder().id(place.to_string()).message_body(body);
                for (name, value) in &message.headers {
                    entry = entry.message_attributes(name, text(value));
                }
                if FIFO {
                    let event = serde_json::from_str(body).map(|wire: Wire| wire.id).unwrap_or_default();
                    let other = Uuid::new_v4().to_string();
                    let group = if event.is_empty() { other.clone() } else { event.replace(' ', "-") };
                    entry = entry.message_group_id(group).message_deduplication_id(other);
                }
                send = send.entries(entry.build().unwrap());
            }
            let sent = Box::pin(send.send()).await.unwrap();
            assert_eq!((sent.successful.len(), sent.failed), (ten.len(), vec![]));
        }
    }

    async fn unsettled(&self) -> u64 {
        let all = self.judge.get_queue_attributes().queue_url(&self.url).attribute_names(QueueAttributeName::All);
        let attributes = Box::pin(all.send()).await.unwrap().attributes.unwrap();
        let number = |name| attributes[&name].parse::<u64>().unwrap();
        number(QueueAttributeName::ApproximateNumberOfMessages)
            + number(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)
            + number(QueueAttributeName::ApproximateNumberOfMessagesDelayed)
    }

    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)> {
        let dead = self.look(&self.dead).await;
        assert!(dead.len() < 10, "there may be more");
        let letter = |message: Message| {
            let reason = message.message_attributes().unwrap()["idem-reason"].string_value().unwrap().to_owned();
            (message.body.unwrap().into_bytes(), reason)
        };
        dead.into_iter().map(letter).collect()
    }

    async fn outage(&self, length: Duration) {
        self.proxy.outage(length).await;
    }

    fn unknown(&self) -> Option<Sqs> {
        Some(Sqs::new(client(&endpoint()), format!("{}/000000000000/{}", endpoint(), Self::name("-unknown"))))
    }

    fn nowhere(&self) -> Sqs {
        self.by(client("http://127.0.0.1:1"))
    }

    async fn destroy(self) {
        for url in [self.url, self.dead] {
            Box::pin(self.judge.delete_queue().queue_url(url).send()).await.unwrap();
        }
    }
}
