//! A connection: the client, its two threads, the producer of dead letters, and what the broker can be asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::FutureProducer;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::super::{AdapterError, Connected, Lag};
use super::context::Context;
use super::session::Session;
use super::{Ordering, answered, commit, poll, settings};
use crate::clock::monotonic;

/// How long the broker may take to answer one question.
const ANSWER: Duration = Duration::from_secs(8);

/// How long the end may take before it goes on in the background, until the client itself gives up.
const CLOSING: Duration = Duration::from_secs(12);

/// How often it is looked whether a topic has more partitions.
const PARTITIONS: Duration = Duration::from_secs(30);

/// For a topic that keeps its records for ever.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 86_400);

type Client = BaseConsumer<Context>;

pub(super) struct Connection {
    pub(super) session: Arc<Session>,
    producer: Mutex<Option<FutureProducer>>,
    /// The threads own it, and the last of them closes it, where that may block.
    consumer: Weak<Client>,
    topics: Vec<String>,
    partitions: Mutex<Option<(Instant, Vec<i32>)>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// What a connection is made with.
pub(super) struct Plan {
    pub(super) consumer: ClientConfig,
    pub(super) producer: ClientConfig,
    pub(super) topics: Vec<String>,
    pub(super) dead_letters: Vec<String>,
    pub(super) order: Ordering,
    pub(super) source: String,
    pub(super) session: Arc<Session>,
}

impl Connection {
    pub(super) async fn open(plan: Plan) -> Result<(Self, Connected), AdapterError> {
        let context = Context { session: Arc::clone(&plan.session), source: plan.source.clone() };
        let made = plan.consumer.create_with_context::<_, Client>(context);
        let consumer = Arc::new(made.map_err(settings::not_made)?);
        let producer: FutureProducer = plan.producer.create().map_err(settings::not_made)?;
        let connection = Self {
            session: Arc::clone(&plan.session),
            producer: Mutex::new(Some(producer)),
            consumer: Arc::downgrade(&consumer),
            topics: plan.topics.clone(),
            partitions: Mutex::default(),
            ended: Mutex::default(),
        };
        // The thread also hears of a login that is refused.
        connection.start(consumer, plan.order, plan.source)?;
        let checked = connection.check(plan.topics, plan.dead_letters, plan.consumer).await;
        match checked {
            Ok(connected) => Ok((connection, connected)),
            Err(error) => {
                // The reason for a silence is worth more than the silence.
                let fault = connection.session.lock().fault.take();
                connection.close().await;
                Err(fault.map_or(error, |(_, text)| AdapterError::refused(text)))
            }
        }
    }

    fn start(&self, consumer: Arc<Client>, order: Ordering, source: String) -> Result<(), AdapterError> {
        let (end, ended) = oneshot::channel();
        let (session, other) = (Arc::clone(&self.session), Arc::clone(&consumer));
        let committing = thread("idem-kafka-commit", move || commit::run(&session, &other, &source))?;
        let session = Arc::clone(&self.session);
        let polling = thread("idem-kafka-poll", move || {
            poll::run(&session, &consumer, order);
            drop(committing.join());
            drop(consumer);
            // Nobody waits for it any more, after a close that took too long.
            let _ = end.send(());
        });
        if let Err(error) = polling {
            self.session.lock().is_over = true;
            self.session.wake_all();
            return Err(error);
        }
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        Ok(())
    }

    async fn check(
        &self,
        topics: Vec<String>,
        dead_letters: Vec<String>,
        config: ClientConfig,
    ) -> Result<Connected, AdapterError> {
        let names: Vec<String> = topics.iter().chain(&dead_letters).cloned().collect();
        let until = monotonic() + ANSWER;
        self.ask(move |client| {
            for name in &names {
                let left = until.saturating_duration_since(monotonic()).max(Duration::from_millis(100));
                partitions_of(client, name, left)?;
            }
            Ok(())
        })
        .await?;
        let horizon = horizon(config, &topics).await;
        self.ask(move |client| {
            let names: Vec<&str> = topics.iter().map(String::as_str).collect();
            client.subscribe(&names).map_err(|error| answered("the subscription", error))
        })
        .await?;
        let connected = Connected::new();
        Ok(match horizon {
            Some((length, because)) => connected.horizon(length, because),
            None => connected,
        })
    }

    /// Asks where that may block.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, AdapterError> + Send + 'static,
    ) -> Result<T, AdapterError> {
        let consumer = Weak::clone(&self.consumer);
        let asked = spawn_blocking(move || match consumer.upgrade() {
            Some(client) => question(&client),
            None => Err(AdapterError::unreachable("the connection is closed")),
        });
        asked.await.unwrap_or_else(|error| Err(AdapterError::unreachable("the question was not asked").because(error)))
    }

    pub(super) fn producer(&self) -> Option<FutureProducer> {
        self.producer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the group has not committed, over all partitions, whoever has them.
    pub(super) async fn lag(&self) -> Result<Lag, AdapterError> {
        let known = self.partitions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = known.filter(|(since, _)| since.elapsed() < PARTITIONS).map(|(_, known)| known);
        let topics = self.topics.clone();
        let (messages, partitions) = self
            .ask(move |client| {
                let partitions = match known {
                    Some(known) => known,
                    None => {
                        let ask = |topic: &String| partitions_of(client, topic, ANSWER);
                        topics.iter().map(ask).collect::<Result<Vec<_>, _>>()?
                    }
                };
                Ok((behind(client, &topics, &partitions)?, partitions))
            })
            .await?;
        let mut cached = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((since, _)) if since.elapsed() < PARTITIONS => {}
            _ => *cached = Some((monotonic(), partitions)),
        }
        drop(cached);
        Ok(Lag::new(messages))
    }

    /// Commits what is settled, leaves the group, and waits for the threads.
    pub(super) async fn close(&self) {
        self.session.lock().is_stopping = true;
        self.session.wake_all();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // Without a broker the client itself gives up later, and the threads end then.
            drop(timeout(CLOSING, ended).await);
        }
        let producer = self.producer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It joins its thread, which blocks.
        drop(spawn_blocking(move || drop(producer)).await);
    }
}

/// One that is dropped without a close ends all the same.
impl Drop for Connection {
    fn drop(&mut self) {
        self.session.lock().is_stopping = true;
        self.session.wake_all();
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, AdapterError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|error| AdapterError::unreachable("no thread can be started for the client").because(error))
}

fn partitions_of(client: &Client, topic: &str, within: Duration) -> Result<i32, AdapterError> {
    let found = client.fetch_metadata(Some(topic), within).map_err(|error| answered("the broker", error))?;
    let found = found.topics().iter().find(|found| found.name() == topic);
    let place = format!("the topic `{topic}`");
    let Some(found) = found else {
        return Err(AdapterError::refused(format!("{place} does not exist: create it, with its partitions")));
    };
    match found.error() {
        Some(error) => Err(answered(&place, rdkafka::error::KafkaError::MetadataFetch(error.into()))),
        None => Ok(i32::try_from(found.partitions().len()).unwrap_or(i32::MAX)),
    }
}

/// How many offsets lie between what is committed and the end.
fn behind(client: &Client, topics: &[String], partitions: &[i32]) -> Result<u64, AdapterError> {
    let mut all = TopicPartitionList::new();
    for (topic, partitions) in topics.iter().zip(partitions) {
        if *partitions > 0 {
            all.add_partition_range(topic, 0, partitions - 1);
        }
    }
    if all.count() == 0 {
        return Ok(0);
    }
    let committed = client.committed_offsets(all.clone(), ANSWER).map_err(|error| answered("the group", error))?;
    let ends = offsets(client, all, Offset::End)?;
    let committed: BTreeMap<_, _> = committed.to_topic_map().into_iter().collect();
    let mut behind: BTreeMap<(String, i32), (i64, i64)> = BTreeMap::new();
    let mut doubtful = TopicPartitionList::new();
    for (place, end) in ends {
        let position = match committed.get(&place) {
            Some(Offset::Offset(position)) => *position,
            _ => 0,
        };
        if position < end {
            doubtful.add_partition(&place.0, place.1);
            behind.insert(place, (position, end));
        }
    }
    if doubtful.count() == 0 {
        return Ok(0);
    }
    // What was deleted by age is not there to be waited for.
    let starts = offsets(client, doubtful, Offset::Beginning)?;
    let left = behind.iter().map(|(place, (position, end))| {
        let start = starts.get(place).copied().unwrap_or(0);
        u64::try_from(end - start.max(*position)).unwrap_or(0)
    });
    Ok(left.sum())
}

fn offsets(
    client: &Client,
    mut of: TopicPartitionList,
    which: Offset,
) -> Result<BTreeMap<(String, i32), i64>, AdapterError> {
    let failed = |error| answered("the partitions", error);
    of.set_all_offsets(which).map_err(failed)?;
    let found = client.offsets_for_times(of, ANSWER).map_err(failed)?;
    let mut offsets = BTreeMap::new();
    for element in found.elements() {
        element.error().map_err(failed)?;
        if let Offset::Offset(offset) = element.offset() {
            offsets.insert((element.topic().to_owned(), element.partition()), offset);
        }
    }
    Ok(offsets)
}

/// How long the topics keep records, and so for how long one that is not committed can come.
async fn horizon(config: ClientConfig, topics: &[String]) -> Option<(Duration, String)> {
    let topics = topics.to_vec();
    let runtime = tokio::runtime::Handle::current();
    let asked = spawn_blocking(move || {
        let admin: AdminClient<DefaultClientContext> = config.create().ok()?;
        let resources: Vec<_> = topics.iter().map(|topic| ResourceSpecifier::Topic(topic)).collect();
        let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(2)));
        let described = runtime.block_on(admin.describe_configs(&resources, &options)).ok()?;
        let of = |resource: rdkafka::admin::ConfigResource| {
            let is_kept = |entry: &rdkafka::admin::ConfigEntry| entry.value.as_deref() == Some("compact");
            if resource.get("cleanup.policy").is_some_and(is_kept) {
                return Some((FOR_EVER, "`cleanup.policy=compact` of the topic".to_owned()));
            }
            let millis = resource.get("retention.ms")?.value.clone()?;
            let length = match millis.parse::<i64>().ok()? {
                ..0 => FOR_EVER,
                millis => Duration::from_millis(millis.unsigned_abs()),
            };
            Some((length, format!("`retention.ms={millis}` of the topic")))
        };
        described.into_iter().filter_map(Result::ok).filter_map(of).max()
    });
    asked.await.ok().flatten()
}
