//! Topics of a test's own, on the broker of all tests or, where it is to fail, on one of its own behind a proxy.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_runtime::{Incoming, Kafka};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, Headers, Message, OwnedHeaders, OwnedMessage};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet, block_in_place};
use uuid::Uuid;

use super::super::TestBroker;

pub(super) const PARTITIONS: i32 = 4;

const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn url() -> String {
    std::env::var("IDEM_TEST_KAFKA_URL").expect("IDEM_TEST_KAFKA_URL is not set: run `tests/run`")
}

pub(crate) struct Topics {
    pub(super) servers: String,
    pub(super) topic: String,
    pub(super) group: String,
    private: Option<Private>,
}

impl Topics {
    /// On the broker of all tests.
    pub(super) async fn shared() -> Self {
        Self::at(url(), None).await
    }

    pub(super) async fn at(servers: String, private: Option<Private>) -> Self {
        let topic = format!("idem-test-{}", Uuid::new_v4().simple());
        let topics = Self { servers, group: format!("{topic}-group"), topic, private };
        topics.make(&[(&topics.topic, PARTITIONS), (&topics.dead(), 1)]).await;
        topics
    }

    /// On a cluster whose topics only it can make.
    pub(super) fn of_mock(servers: String) -> Self {
        Self { servers, topic: "events".to_owned(), group: "group".to_owned(), private: None }
    }

    /// The name of another topic of the test's own.
    pub(super) fn named(&self, name: &str) -> String {
        format!("{}.{name}", self.topic)
    }

    pub(super) fn dead(&self) -> String {
        format!("{}.dead", self.topic)
    }

    pub(super) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.servers).set("message.max.bytes", "2000000");
        config
    }

    /// One record a batch: asked for a partition's end, Tansu 0.6 says where the last batch begins, plus one. Kafka says
    /// where it ends, and so does librdkafka's own cluster, with which batches are tested.
    fn producer(&self) -> FutureProducer {
        self.config().set("batch.num.messages", "1").create().unwrap()
    }

    pub(super) async fn make(&self, topics: &[(&str, i32)]) {
        let admin: AdminClient<DefaultClientContext> = self.config().create().unwrap();
        let topics = topics.iter().map(|(name, parts)| NewTopic::new(name, *parts, TopicReplication::Fixed(1)));
        let topics: Vec<_> = topics.collect();
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        for made in admin.create_topics(&topics, &options).await.unwrap() {
            made.unwrap();
        }
    }

    pub(super) fn kafka(&self) -> Kafka {
        Kafka::new(&self.servers, &self.group, &self.topic)
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "500")
    }

    /// Sends a record to a partition, or where its key belongs.
    pub(super) async fn send(&self, key: Option<&str>, body: &[u8], partition: Option<i32>) {
        let producer = self.producer();
        let mut record = FutureRecord::<str, [u8]>::to(&self.topic).payload(body);
        (record.key, record.partition) = (key, partition);
        producer.send(record, PATIENCE).await.unwrap();
    }

    /// The same with a header that is text and one that is not.
    pub(super) async fn send_with_headers(&self, key: &str, body: &[u8], partition: i32) {
        let headers = OwnedHeaders::new()
            .insert(Header { key: "trace", value: Some("abc") })
            .insert(Header { key: "binary", value: Some(&[0xff_u8, 0x00][..]) });
        let record = FutureRecord::to(&self.topic).key(key).payload(body).partition(partition).headers(headers);
        self.producer().send(record, PATIENCE).await.unwrap();
    }

    /// The header that is no text.
    pub(super) fn binary(record: &OwnedMessage) -> Option<Vec<u8>> {
        record.headers()?.iter().find(|header| header.key == "binary")?.value.map(<[u8]>::to_vec)
    }

    pub(super) async fn send_in_a_transaction(&self, body: &[u8], partition: i32) {
        let producer: FutureProducer = self.config().set("transactional.id", &self.topic).create().unwrap();
        block_in_place(|| producer.init_transactions(PATIENCE)).unwrap();
        producer.begin_transaction().unwrap();
        let record = FutureRecord::<str, [u8]>::to(&self.topic).payload(body).partition(partition);
        producer.send(record, PATIENCE).await.unwrap();
        block_in_place(|| producer.commit_transaction(PATIENCE)).unwrap();
    }

    /// So many records in one batch.
    pub(super) async fn batch(&self, records: usize) {
        let producer: FutureProducer = self.config().set("linger.ms", "200").create().unwrap();
        let record = || FutureRecord::<str, str>::to(&self.topic).payload("body").partition(0);
        let sent: Vec<_> = (0..records).map(|_| producer.send_result(record()).map_err(|(error, _)| error)).collect();
        for sent in sent {
            sent.unwrap().await.unwrap().unwrap();
        }
    }

    /// Another topic of the test's own, with settings.
    pub(super) async fn make_with(&self, name: &str, settings: &[(&str, &str)]) {
        let name = self.named(name);
        let mut topic = NewTopic::new(&name, 1, TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let admin: AdminClient<DefaultClientContext> = self.config().create().unwrap();
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        for made in admin.create_topics(&[topic], &options).await.unwrap() {
            made.unwrap();
        }
    }

    fn judge(&self) -> BaseConsumer {
        self.config().set("group.id", &self.group).set("enable.auto.commit", "false").create().unwrap()
    }

    fn partitions(&self) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        list.add_partition_range(&self.topic, 0, PARTITIONS - 1);
        list
    }

    /// What the group has committed, by partition; zero for nothing.
    pub(super) fn committed(&self) -> Vec<i64> {
        let judge = self.judge();
        let committed = again(|| judge.committed_offsets(self.partitions(), PATIENCE));
        let offset = |offset| if let Offset::Offset(offset) = offset { offset } else { 0 };
        committed.elements().iter().map(|element| offset(element.offset())).collect()
    }

    /// The records of a topic with one partition.
    pub(super) fn read(&self, topic: &str) -> Vec<OwnedMessage> {
        block_in_place(|| {
            let mut config = self.config();
            config.set("group.id", "nobody").set("enable.auto.commit", "false").set("enable.partition.eof", "true");
            let reader: BaseConsumer = config.create().unwrap();
            let mut list = TopicPartitionList::new();
            list.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
            reader.assign(&list).unwrap();
            let mut records = Vec::new();
            loop {
                match reader.poll(PATIENCE).expect("the end comes") {
                    Ok(record) => records.push(record.detach()),
                    Err(KafkaError::PartitionEOF(_)) => return records,
                    Err(_) => {}
                }
            }
        })
    }
}

/// Asks until there is an answer: after an outage the client has to find its way back.
fn again<T>(ask: impl Fn() -> Result<T, KafkaError>) -> T {
    let mut tries = 0;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) if tries == 20 => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
        tries += 1;
    }
}

pub(super) fn text(record: &OwnedMessage, name: &str) -> Option<String> {
    let found = record.headers()?.iter().filter(|header| header.key == name).last()?;
    Some(String::from_utf8(found.value?.to_vec()).unwrap())
}

impl TestBroker for Topics {
    type Adapter = Kafka;
    const SERVICE: &'static str = "kafka";
    /// The shortest session that a broker takes by default.
    const LEASE: Duration = Duration::from_secs(6);
    const LARGEST: usize = 900_000;
    /// As many as a consumer with the default concurrency holds.
    const LEFT_BEHIND: u64 = 32;
    /// Tansu 0.6 goes on naming the leader that left while a member waits to join, and no group forms any more.
    const JOINING: Duration = Duration::from_secs(6);

    async fn create(lease: Duration) -> Self {
        // The tests with the short lease are those that cut connections.
        if lease == Self::LEASE {
            let private = Private::start().await;
            return Self::at(format!("127.0.0.1:{}", private.port), Some(private)).await;
        }
        Self::shared().await
    }

    fn adapter(&self) -> Kafka {
        match &self.private {
            Some(_) => self.kafka().set("max.poll.interval.ms", "6000"),
            None => self.kafka(),
        }
    }

    /// The key is the event's, so that its records keep their order.
    async fn publish(&self, messages: Vec<Incoming>) {
        let producer = self.producer();
        let mut sent = Vec::new();
        for message in &messages {
            let event: Option<serde_json::Value> = serde_json::from_slice(&message.body).ok();
            let key = event.and_then(|event| Some(event.get("id")?.as_str()?.to_owned()));
            let mut record = FutureRecord::<str, [u8]>::to(&self.topic).payload(&message.body);
            record.key = key.as_deref();
            sent.push(producer.send_result(record).map_err(|(error, _)| error).unwrap());
        }
        for sent in sent {
            sent.await.unwrap().unwrap();
        }
    }

    async fn unsettled(&self) -> u64 {
        block_in_place(|| {
            let judge = self.judge();
            let committed = again(|| judge.committed_offsets(self.partitions(), PATIENCE));
            let left = committed
                .elements()
                .iter()
                .map(|element| {
                    let (_, end) = again(|| judge.fetch_watermarks(&self.topic, element.partition(), PATIENCE));
                    let Offset::Offset(offset) = element.offset() else { return end };
                    end - offset
                })
                .sum::<i64>();
            u64::try_from(left).unwrap()
        })
    }

    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)> {
        let dead = self.read(&self.dead());
        dead.iter()
            .map(|record| (record.payload().unwrap_or_default().to_vec(), text(record, "idem-reason").unwrap()))
            .collect()
    }

    async fn outage(&self, length: Duration) {
        self.private.as_ref().expect("it has a broker of its own").outage(length).await;
    }

    fn unknown(&self) -> Option<Kafka> {
        Some(Kafka::new(&self.servers, &self.group, format!("{}-unknown", self.topic)))
    }

    fn nowhere(&self) -> Kafka {
        Kafka::new("127.0.0.1:1", &self.group, &self.topic)
    }

    async fn destroy(self) {
        let admin: AdminClient<DefaultClientContext> = self.config().create().unwrap();
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        drop(admin.delete_topics(&[&self.topic, &self.dead()], &options).await);
    }
}

/// A broker of a test's own, which tells its clients to come by a proxy. It keeps everything in memory, so it is the
/// connections that end and not the broker.
pub(crate) struct Private {
    broker: Child,
    pub(super) port: u16,
    behind: u16,
    proxy: Arc<Mutex<JoinHandle<()>>>,
}

impl Private {
    pub(super) async fn start() -> Self {
        let program = std::env::var("IDEM_TEST_TANSU").expect("IDEM_TEST_TANSU is not set: run `tests/run`");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let behind = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let broker = Command::new(program)
            .args(["broker", "--storage-engine", "memory://tansu/"])
            .args(["--listener-url", &format!("tcp://127.0.0.1:{behind}")])
            .args(["--advertised-listener-url", &format!("tcp://127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", behind)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let proxy = Arc::new(Mutex::new(tokio::spawn(pass_on(listener, behind))));
        Self { broker, port, behind, proxy }
    }

    async fn outage(&self, length: Duration) {
        self.proxy.lock().unwrap().abort();
        tokio::time::sleep(length).await;
        let listener = loop {
            match TcpListener::bind(("127.0.0.1", self.port)).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        *self.proxy.lock().unwrap() = tokio::spawn(pass_on(listener, self.behind));
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.proxy.lock().unwrap().abort();
        self.broker.kill().unwrap();
        self.broker.wait().unwrap();
    }
}

/// Its connections end with it.
async fn pass_on(listener: TcpListener, port: u16) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        connections.spawn(async move {
            if let Ok(mut broker) = TcpStream::connect(("127.0.0.1", port)).await {
                drop(copy_bidirectional(&mut client, &mut broker).await);
            }
        });
    }
}
