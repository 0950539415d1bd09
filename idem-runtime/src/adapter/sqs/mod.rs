//! Amazon SQS, standard and FIFO queues.

mod dead_letter;
mod deletes;
mod fault;
mod polls;
mod queue;

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::{Adapter, AdapterError, Connected, Delivery, Incoming, Lag, Retries, Settlement};
use crate::clock;
use deletes::Deletes;
use fault::{ANSWER, answered};
use polls::Polls;
use queue::{Attributes, Queue};

/// How long a request for messages waits for one.
const WAIT: Duration = Duration::from_secs(5);

/// SQS hides no message for longer, counted from when it was received, whatever is asked for later.
const LONGEST: Duration = Duration::from_secs(43_200);

/// A queue of Amazon SQS, standard or FIFO.
///
/// The client is the caller's, with its HTTP client, credentials and region: `aws-sdk-sqs` 1.90 or newer. This crate takes
/// it without default features, since those build aws-lc; `default-https-client` brings its HTTP client, or
/// `aws-smithy-http-client` another.
///
/// ```
/// use aws_sdk_sqs::Client;
/// use aws_sdk_sqs::config::{BehaviorVersion, Config, Region};
/// use idem_runtime::Sqs;
/// use std::time::Duration;
///
/// // With `aws-config` it is `Client::new(&aws_config::load_from_env().await)`.
/// let config = Config::builder().behavior_version(BehaviorVersion::v2025_08_07()).region(Region::new("eu-central-1"));
/// let client = Client::from_conf(config.build());
/// let queue = Sqs::new(client, "https://sqs.eu-central-1.amazonaws.com/123456789012/payments")
///     .dead_letter_queue("https://sqs.eu-central-1.amazonaws.com/123456789012/payments-dead")
///     .visibility_timeout(Duration::from_secs(60));
/// # let _ = queue;
/// ```
///
/// It may `sqs:ReceiveMessage`, `sqs:DeleteMessage`, `sqs:ChangeMessageVisibility` and `sqs:GetQueueAttributes` on the queue,
/// and `sqs:SendMessage`, `sqs:GetQueueAttributes` and `sqs:GetQueueUrl` on the dead-letter queue.
///
/// A queue without a dead-letter queue is refused: SQS deletes in silence what is not handled in time.
///
/// Messages of a standard queue come in any order. Those of a FIFO queue are received one a request, since of two of one
/// group the second must not overtake the first when that fails.
pub struct Sqs {
    client: Client,
    url: String,
    lease: Option<Duration>,
    wait: Duration,
    dead_letters: Option<String>,
    /// What was learnt when it connected.
    queue: StdMutex<Option<Arc<Queue>>>,
    polls: Mutex<Polls>,
    deletes: Deletes,
}

/// What a message of [`Sqs`] is settled with.
#[derive(Clone)]
pub struct SqsReceipt(Arc<Received>);

struct Received {
    handle: String,
    /// The message's, which stays the same when it comes again.
    id: String,
    /// Of a FIFO queue.
    group: Option<String>,
    /// For its copy among the dead letters.
    attributes: HashMap<String, MessageAttributeValue>,
    /// When it was asked for.
    since: Instant,
}

impl fmt::Debug for SqsReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsReceipt").field("message", &self.0.id).finish_non_exhaustive()
    }
}

impl Sqs {
    /// The queue at this URL.
    #[must_use]
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        let url = queue_url.into();
        let deletes = Deletes::new(client.clone(), url.clone());
        Self {
            client,
            url,
            lease: None,
            wait: WAIT,
            dead_letters: None,
            queue: StdMutex::default(),
            polls: Mutex::default(),
            deletes,
        }
    }

    /// How long a message that was received is hidden from other consumers: a second to 12 hours, in whole seconds. Default:
    /// the queue's own. The consumer extends it while a handler runs, so it is the time until a dead consumer's messages are
    /// given to another.
    #[must_use]
    pub fn visibility_timeout(mut self, lease: Duration) -> Self {
        self.lease = Some(lease.clamp(Duration::from_secs(1), LONGEST));
        self
    }

    /// How long a request for messages waits for one: a second to 20, in whole seconds. Default: 5. A longer one costs fewer
    /// requests while the queue is empty, and [`Consuming::stop`](super::Consuming::stop) waits for its end: SQS would give
    /// messages to a request that nobody listens to.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait.clamp(Duration::from_secs(1), Duration::from_secs(20));
        self
    }

    /// Where dead letters go. Default: the queue that the `RedrivePolicy` names.
    #[must_use]
    pub fn dead_letter_queue(mut self, queue_url: impl Into<String>) -> Self {
        self.dead_letters = Some(queue_url.into());
        self
    }

    fn queue(&self) -> Result<Arc<Queue>, AdapterError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.clone().ok_or_else(|| AdapterError::unreachable("not connected yet"))
    }

    /// Hides a message for so long from now, or shows it, if that is zero.
    async fn hide(&self, receipt: &SqsReceipt, time: Duration) -> Result<(), AdapterError> {
        let held = clock::monotonic().saturating_duration_since(receipt.0.since);
        let request = self.client.change_message_visibility().queue_url(&self.url).receipt_handle(&receipt.0.handle);
        let request = request.visibility_timeout(whole_seconds(time.min(left(held))));
        answered("the message's visibility timeout was not changed", ANSWER, request.send()).await.map(drop)
    }

    /// A message as the consumer takes it.
    fn delivery(queue: &Queue, mut message: Message, since: Instant) -> Delivery<SqsReceipt> {
        let mut system = message.attributes.take().unwrap_or_default();
        let attributes = message.message_attributes.take().unwrap_or_default();
        let count = system.get(&MessageSystemAttributeName::ApproximateReceiveCount);
        let attempt = count.and_then(|count| count.parse().ok()).unwrap_or(1);
        let group = system.remove(&MessageSystemAttributeName::MessageGroupId).filter(|_| queue.is_fifo);
        let order = group.as_ref().map(|group| {
            let mut hasher = DefaultHasher::new();
            group.hash(&mut hasher);
            hasher.finish()
        });
        let texts = attributes.iter();
        let texts = texts.filter_map(|(name, value)| Some((name.clone(), value.string_value()?.to_owned())));
        let incoming = Incoming { headers: texts.collect(), body: message.body.unwrap_or_default().into_bytes() };
        let (handle, id) = (message.receipt_handle.unwrap_or_default(), message.message_id.unwrap_or_default());
        let receipt = SqsReceipt(Arc::new(Received { handle, id, group, attributes, since }));
        Delivery { order, ..Delivery::new(incoming, attempt, receipt) }
    }
}

impl fmt::Debug for Sqs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqs").field("queue", &self.url).finish_non_exhaustive()
    }
}

impl Adapter for Sqs {
    type Receipt = SqsReceipt;

    const BROKER: &'static str = "sqs";

    const RETRIES: Retries = Retries::ByBroker;

    fn source(&self) -> String {
        self.url.clone()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        let looked_up = timeout(ANSWER, Queue::look_up(self)).await;
        let late = |_| AdapterError::unreachable(format!("no answer within {} seconds", ANSWER.as_secs()));
        let (queue, connected) = looked_up.map_err(late).flatten()?;
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(queue));
        Ok(connected)
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<SqsReceipt>>, AdapterError> {
        let queue = self.queue()?;
        let mut polls = self.polls.lock().await;
        polls.fill(self, &queue, max);
        polls.next(&queue, max).await
    }

    async fn settle(&self, delivery: &Delivery<SqsReceipt>, settlement: &Settlement) -> Result<(), AdapterError> {
        let receipt = &delivery.receipt;
        match settlement {
            Settlement::Ack => {}
            Settlement::Retry { after } | Settlement::Release { after } => return self.hide(receipt, *after).await,
            Settlement::DeadLetter { reason } => {
                dead_letter::store(&self.client, &self.queue()?.dead_letters, delivery, reason).await?;
            }
        }
        self.deletes.delete(&receipt.0.handle).await
    }

    async fn extend(&self, receipt: &SqsReceipt) -> Result<(), AdapterError> {
        self.hide(receipt, seconds(self.queue()?.lease)).await
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        let attributes = Attributes::of(self, &self.url, "the queue's messages were not counted").await?;
        let mut messages = 0_u64;
        for count in [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ] {
            messages = messages.saturating_add(attributes.number(&count)?);
        }
        Ok(Some(Lag::new(messages)))
    }

    async fn close(&self) {
        if let Ok(queue) = self.queue() {
            for receipt in self.polls.lock().await.end(&queue).await {
                // What cannot be given back comes again when its time is over.
                drop(self.hide(&receipt, Duration::ZERO).await);
            }
        }
        self.deletes.end().await;
    }
}

/// How much longer SQS hides a message that was received so long ago.
fn left(held: Duration) -> Duration {
    // A second for the way there.
    LONGEST.saturating_sub(held).saturating_sub(Duration::from_secs(1))
}

/// SQS counts in seconds. A part of one is taken as a whole one, so that nothing comes too early.
fn whole_seconds(time: Duration) -> i32 {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i32::try_from(seconds.min(LONGEST.as_secs())).unwrap_or(0)
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(seconds.unsigned_abs().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_and_end_twelve_hours_after_the_receipt() {
        let hour = |hours: u64| Duration::from_secs(hours * 3_600);
        assert_eq!(whole_seconds(Duration::ZERO), 0);
        assert_eq!(whole_seconds(Duration::from_millis(2)), 1);
        assert_eq!(whole_seconds(Duration::MAX), 43_200);
        assert_eq!(whole_seconds(hour(12).min(left(hour(11)))), 3_599);
        assert_eq!(left(hour(13)), Duration::ZERO);
    }
}
