//! Kafka: a member of a consumer group, whose offsets move past nothing that is not settled.

mod commit;
mod connection;
mod context;
mod dead;
mod poll;
mod session;
mod settings;
mod shelf;
mod tracker;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;

use super::{Adapter, AdapterError, AdapterFault, Connected, Delivery, Lag, Retries, Settlement};
use connection::{Connection, Plan};
use session::{Session, stale};
use shelf::Place;

/// How long a partition that another member gets waits for what is in flight.
const HAND_OVER: Duration = Duration::from_secs(3);

/// A topic of Kafka, consumed as a member of a group.
///
/// Records with the same key are handled one after the other, those with different keys side by side, also of one partition.
/// An offset is committed when its record and all before it in the partition are settled. Dead letters go to the topic
/// `<topic>.dead`; both topics must exist.
///
/// ```no_run
/// use idem_runtime::{Consumer, Engine, Kafka, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// #[derive(serde::Deserialize)]
/// struct Paid {
///     order_id: String,
/// }
///
/// // The topic keeps records for seven days, and operators replay dead letters of a week.
/// #[idempotent(key(msg.order_id), retention = "30d", redelivery(topic = "7d", replay = "14d"))]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     sqlx::query("INSERT INTO credit VALUES (?)").bind(&msg.order_id).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// # async fn consume(engine: Engine<Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
/// let payments = Kafka::new("kafka-1:9092,kafka-2:9092", "credits", "payments")
///     .dead_letter_topic("payments.failed")
///     .set("security.protocol", "SASL_SSL")
///     .set("sasl.mechanism", "SCRAM-SHA-512")
///     .set("sasl.username", "credits")
///     .set("sasl.password", std::env::var("KAFKA_PASSWORD")?)
///     .set("session.timeout.ms", "20000");
/// let consuming = Consumer::new(&engine, payments).handler::<credit>().start().await?;
/// # consuming.stop().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "a consumer takes it"]
pub struct Kafka {
    servers: String,
    group: String,
    topics: Vec<String>,
    dead_letters: Option<String>,
    settings: BTreeMap<String, String>,
    order: Ordering,
    is_from_latest: bool,
    hand_over: Duration,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// What a record of [`Kafka`] is settled with.
#[derive(Clone)]
pub struct KafkaReceipt {
    place: Place,
    offset: i64,
    generation: u64,
    original: Arc<Original>,
}

/// What a dead letter needs of its record beside the message.
#[derive(Default)]
struct Original {
    key: Option<Vec<u8>>,
    headers: Option<OwnedHeaders>,
}

type Record = Delivery<KafkaReceipt>;

/// Which records wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ordering {
    Key,
    Partition,
}

impl Ordering {
    fn of(self, place: &Place, key: Option<&[u8]>) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        place.hash(&mut hasher);
        if self == Self::Key {
            key?.hash(&mut hasher);
        }
        Some(hasher.finish())
    }
}

impl Kafka {
    /// The topic, as the group consumes it, at the first of these servers that answers: `host:port`, separated by commas.
    pub fn new(servers: impl Into<String>, group: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            group: group.into(),
            topics: vec![topic.into()],
            dead_letters: None,
            settings: BTreeMap::new(),
            order: Ordering::Key,
            is_from_latest: false,
            hand_over: HAND_OVER,
            connection: Mutex::new(None),
        }
    }

    /// Another topic beside the first.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topics.push(topic.into());
        self
    }

    /// Where dead letters go, of all topics. Default: to `<topic>.dead`. It must exist, with a retention that leaves time for
    /// somebody to look.
    pub fn dead_letter_topic(mut self, topic: impl Into<String>) -> Self {
        self.dead_letters = Some(topic.into());
        self
    }

    /// One of librdkafka's settings. Those that acknowledge early or skip records are refused when the consumer starts.
    ///
    /// Of the adapter's own defaults, `partition.assignment.strategy=cooperative-sticky`, `socket.timeout.ms=10000`,
    /// `queued.min.messages=1000` and `queued.max.messages.kbytes=16384` can be changed. A group whose members still use
    /// `range` or `roundrobin` needs `cooperative-sticky,range` for one deployment in between.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.insert(key.into(), value.into());
        self
    }

    /// Handles all records of a partition one after the other, whatever their keys. One that fails holds its partition up until
    /// it succeeds or is dead-lettered.
    pub fn ordered_by_partition(mut self) -> Self {
        self.order = Ordering::Partition;
        self
    }

    /// A group without a committed offset begins at the end. What was sent before is skipped, and so is what was sent before
    /// the first commit to a partition that is added later, and what an offset that was deleted by age stood for.
    pub fn from_latest(mut self) -> Self {
        self.is_from_latest = true;
        self
    }

    /// How long a partition that another member gets waits for what is in flight, so that its offset is committed and nothing
    /// comes twice. Default: 3 seconds; at most a quarter of `max.poll.interval.ms`. It holds the rebalance up.
    pub fn hand_over(mut self, length: Duration) -> Self {
        self.hand_over = length;
        self
    }

    fn dead_letters_of(&self, topic: &str) -> String {
        self.dead_letters.clone().unwrap_or_else(|| format!("{topic}.dead"))
    }

    fn current(&self) -> Result<Arc<Connection>, AdapterError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone();
        connection.ok_or_else(|| AdapterError::unreachable("there is no connection"))
    }

    fn taken(&self) -> Option<Arc<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Adapter for Kafka {
    type Receipt = KafkaReceipt;

    const BROKER: &'static str = "kafka";

    const RETRIES: Retries = Retries::InProcess;

    fn source(&self) -> String {
        self.topics.join(",")
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        settings::check(&self.settings)?;
        let mut dead_letters: Vec<_> = self.topics.iter().map(|topic| self.dead_letters_of(topic)).collect();
        dead_letters.dedup();
        if let Some(topic) = dead_letters.iter().find(|topic| self.topics.contains(topic)) {
            return Err(AdapterError::refused(format!("dead letters of `{topic}` would go back to it")));
        }
        // It leaves the group, for the next one to join.
        if let Some(connection) = self.taken() {
            connection.close().await;
        }
        let interval = settings::max_poll_interval(&self.settings);
        let plan = Plan {
            consumer: settings::consumer(&self.servers, &self.group, &self.settings, self.is_from_latest),
            producer: settings::producer(&self.servers, &self.settings),
            topics: self.topics.clone(),
            dead_letters,
            order: self.order,
            source: self.source(),
            session: Arc::new(Session::new(interval, self.hand_over.min(interval / 4))),
        };
        let (connection, connected) = Connection::open(plan).await?;
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(connection));
        // Signs of life, without which the member gives its partitions up.
        Ok(connected.lease(interval))
    }

    async fn receive(&self, max: usize) -> Result<Vec<Record>, AdapterError> {
        self.current()?.session.receive(max).await
    }

    async fn settle(&self, delivery: &Record, how: &Settlement) -> Result<(), AdapterError> {
        let Ok(connection) = self.current() else { return Err(stale()) };
        let session = &connection.session;
        match how {
            Settlement::Ack => session.settled(delivery),
            Settlement::Retry { after } | Settlement::Release { after } => session.keep_back(delivery, *after),
            Settlement::DeadLetter { reason } => {
                if !session.holds(&delivery.receipt) {
                    return Err(stale());
                }
                let topic = self.dead_letters_of(&delivery.receipt.place.0);
                let Some(producer) = connection.producer() else { return Err(stale()) };
                dead::bury(&producer, &topic, delivery, reason).await?;
                session.settled(delivery)
            }
        }
    }

    async fn acknowledge_first(&self, delivery: &Record) -> Result<(), AdapterError> {
        let Ok(connection) = self.current() else { return Err(stale()) };
        connection.session.confirmed(delivery).await
    }

    /// The partition is ours as long as the thread polls, and it does as long as somebody says this.
    async fn extend(&self, _receipt: &KafkaReceipt) -> Result<(), AdapterError> {
        if let Ok(connection) = self.current() {
            connection.session.sign_of_life();
        }
        Ok(())
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        self.current()?.lag().await.map(Some)
    }

    async fn close(&self) {
        if let Some(connection) = self.taken() {
            connection.close().await;
        }
    }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values of the settings can be passwords.
        let settings: Vec<_> = self.settings.keys().collect();
        f.debug_struct("Kafka")
            .field("servers", &self.servers)
            .field("group", &self.group)
            .field("topics", &self.topics)
            .field("settings", &settings)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for KafkaReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: (topic, partition), offset, generation, .. } = self;
        write!(f, "KafkaReceipt({topic}[{partition}] @ {offset}, assignment {generation})")
    }
}

/// What a code means for the consumer, where the client does not recover by itself.
fn fault(code: RDKafkaErrorCode) -> Option<AdapterFault> {
    use RDKafkaErrorCode as Code;
    match code {
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::Authentication
        | Code::SaslAuthenticationFailed
        | Code::FencedInstanceId
        | Code::Fenced
        | Code::UnknownTopic
        | Code::UnknownTopicOrPartition
        | Code::InvalidTopic
        | Code::InvalidGroupId
        | Code::InconsistentGroupProtocol
        | Code::AutoOffsetReset => Some(AdapterFault::Refused),
        Code::Fatal => Some(AdapterFault::Unreachable),
        _ => None,
    }
}

/// What a code means for people.
fn says(code: RDKafkaErrorCode) -> String {
    use RDKafkaErrorCode as Code;
    let what_to_do = match code {
        Code::TopicAuthorizationFailed => {
            "the user may not do this with the topic: allow `Read` (`Write` for dead letters)"
        }
        Code::GroupAuthorizationFailed => "the user may not use the group: allow `Read` on it",
        Code::ClusterAuthorizationFailed => "the user may not write idempotently: allow `IdempotentWrite`",
        Code::Authentication | Code::SaslAuthenticationFailed => "the broker does not take the login: check `sasl.*`",
        Code::FencedInstanceId | Code::Fenced => {
            "another member has the same `group.instance.id`: each process needs one of its own"
        }
        Code::UnknownTopic | Code::UnknownTopicOrPartition => {
            "the topic does not exist: create it, with its partitions"
        }
        Code::InconsistentGroupProtocol => {
            "the group's other members share no `partition.assignment.strategy` with this one: see `Kafka::set`"
        }
        Code::AutoOffsetReset => "no offset to begin at, and `auto.offset.reset` does not choose one",
        _ => return format!("Kafka says: {code}"),
    };
    format!("{what_to_do} ({code})")
}

/// An answer that is none.
fn answered(place: &str, error: KafkaError) -> AdapterError {
    let code = error.rdkafka_error_code();
    match code.and_then(|code| fault(code).map(|fault| (fault, code))) {
        Some((AdapterFault::Refused, code)) => AdapterError::refused(format!("{place}: {}", says(code))),
        _ => AdapterError::unreachable(format!("{place} did not answer")).because(error),
    }
}
