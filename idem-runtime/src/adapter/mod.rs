//! Brokers: what the consumer asks of one, and one file or folder for each.
//!
//! The consumer's loop owns everything that is the same for all of them: decoding, routing, retries, back-pressure, the
//! end. An adapter receives, settles, keeps a delivery from being taken for abandoned, and says how much waits.

pub(crate) mod consumer;
mod database;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqs")]
mod sqs;

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;

pub use consumer::{Consumer, Consuming, RetryPolicy, Route, route};
#[cfg(feature = "axum")]
pub(crate) use consumer::{Handled, Routed};
pub use database::{DatabaseQueue, DatabaseReceipt, DeadLetter};
#[cfg(feature = "kafka")]
pub use kafka::{Kafka, KafkaReceipt};
#[cfg(feature = "nats")]
pub use nats::{NatsJetStream, NatsReceipt};
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{RabbitMq, RabbitMqReceipt};
#[cfg(feature = "redis")]
pub use redis::{RedisReceipt, RedisStream};
#[cfg(feature = "sqs")]
pub use sqs::{Sqs, SqsReceipt};

/// A broker's side of a [`Consumer`].
///
/// The consumer calls [`connect`](Self::connect) before all else, and again whenever a call said that the broker cannot be
/// reached. It settles each delivery once, and only after the commit of its effect.
pub trait Adapter: Send + Sync + 'static {
    /// What a delivery is settled with. It belongs to the connection it came by.
    type Receipt: Clone + Send + Sync + 'static;

    /// The broker's name, for logs and errors.
    const BROKER: &'static str;

    /// Who keeps a failed delivery back until its next attempt.
    const RETRIES: Retries;

    /// The queue, stream or topic, for logs and errors; without a password.
    fn source(&self) -> String;

    /// Checks the settings and connects.
    ///
    /// # Errors
    ///
    /// [`AdapterError::refused`] for settings that would acknowledge a delivery before its effect is committed, for a queue
    /// that is not there, for a missing permission; [`AdapterError::unreachable`] for a broker that does not answer.
    fn connect(&self) -> impl Future<Output = Result<Connected, AdapterError>> + Send;

    /// Waits for deliveries, and returns one or more of them, at most `max`. May return none after a while.
    ///
    /// # Errors
    ///
    /// Any [`AdapterError`]. The consumer connects anew.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: a delivery that was on its way comes again, or with the next call.
    fn receive(&self, max: usize) -> impl Future<Output = Result<Vec<Delivery<Self::Receipt>>, AdapterError>> + Send;

    /// Tells the broker what became of a delivery.
    ///
    /// # Errors
    ///
    /// [`AdapterError::stale`] when the broker has taken the delivery back meanwhile; others as for `receive`. The delivery
    /// comes again then, and is a duplicate if its effect is committed.
    fn settle(
        &self,
        delivery: &Delivery<Self::Receipt>,
        settlement: &Settlement,
    ) -> impl Future<Output = Result<(), AdapterError>> + Send;

    /// Acknowledges many deliveries, and says of each, in their order, what came of it. As [`settle`](Self::settle) for each
    /// at once, unless the broker has something better.
    fn ack_all(
        &self,
        deliveries: &[Delivery<Self::Receipt>],
    ) -> impl Future<Output = Vec<Result<(), AdapterError>>> + Send {
        join_all(deliveries.iter().map(|delivery| self.settle(delivery, &Settlement::Ack)))
    }

    /// Acknowledges a delivery before its handler runs, and returns when the broker has taken that. For brokers whose
    /// [`settle`](Self::settle) returns earlier.
    ///
    /// # Errors
    ///
    /// As for [`settle`](Self::settle). The handler does not run then.
    fn acknowledge_first(
        &self,
        delivery: &Delivery<Self::Receipt>,
    ) -> impl Future<Output = Result<(), AdapterError>> + Send {
        self.settle(delivery, &Settlement::Ack)
    }

    /// Says that a delivery is still being handled, so that the broker does not give it to somebody else. Called at a third
    /// of [`Connected::lease`].
    ///
    /// # Errors
    ///
    /// As for [`settle`](Self::settle).
    fn extend(&self, receipt: &Self::Receipt) -> impl Future<Output = Result<(), AdapterError>> + Send;

    /// How much waits; `None` where the broker cannot be asked.
    ///
    /// # Errors
    ///
    /// As for [`receive`](Self::receive).
    fn lag(&self) -> impl Future<Output = Result<Option<Lag>, AdapterError>> + Send;

    /// Ends the connection. What was received and not settled comes again.
    fn close(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Who keeps a failed delivery back until its next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retries {
    /// The broker: [`Settlement::Retry`] says for how long.
    ByBroker,
    /// The consumer, which holds it and extends its lease. The adapter is never told [`Settlement::Retry`] while the
    /// consumer runs.
    InProcess,
}

/// What the broker said when the adapter connected.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Connected {
    /// How long a delivery may be handled without [`Adapter::extend`]; `None` for as long as the connection lives.
    pub lease: Option<Duration>,
    /// The longest time after which the broker itself may deliver a message again, as far as it can be asked.
    pub horizon: Option<Horizon>,
}

impl Connected {
    /// A broker that says nothing of itself.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a delivery may be handled without [`Adapter::extend`].
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The longest time after which the broker may deliver a message again, and the setting that says so.
    #[must_use]
    pub fn horizon(mut self, length: Duration, because: impl Into<String>) -> Self {
        self.horizon = Some(Horizon { length, because: because.into() });
        self
    }
}

/// The longest time after which a broker may deliver a message again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Horizon {
    /// The time, from the first delivery on.
    pub length: Duration,
    /// The broker's setting that it follows from.
    pub because: String,
}

/// One attempt of a broker to hand over a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delivery<R> {
    /// What was sent.
    pub message: Incoming,
    /// The number of this attempt, from 1, as far as the broker counts: a rollback must not undo the count.
    pub attempt: u32,
    /// Deliveries with the same one are handled one after the other, in the order in which they came: a partition, or a
    /// group. `None` where the broker has no order.
    pub order: Option<u64>,
    /// What it is settled with.
    pub receipt: R,
}

impl<R> Delivery<R> {
    /// A delivery without an order.
    pub fn new(message: Incoming, attempt: u32, receipt: R) -> Self {
        Self { message, attempt, order: None, receipt }
    }

    /// The same, to be handled after all that came before it with this order.
    #[must_use]
    pub fn in_order(mut self, order: u64) -> Self {
        self.order = Some(order);
        self
    }
}

/// A message as it came: the bytes, and what the broker sends along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incoming {
    /// The body.
    pub body: Vec<u8>,
    /// The headers, properties or attributes that are text.
    pub headers: BTreeMap<String, String>,
}

impl Incoming {
    /// A message without headers.
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), headers: BTreeMap::new() }
    }

    /// One header, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The same with one header more.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }
}

/// What to tell the broker about a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settlement {
    /// Done: do not deliver it again.
    Ack,
    /// It failed: deliver it again, after this time.
    Retry {
        /// The time until then.
        after: Duration,
    },
    /// It was not this delivery's fault, or nobody tried: deliver it again after this time, and do not count the attempt
    /// where that can be helped.
    Release {
        /// The time until then.
        after: Duration,
    },
    /// Park it for a human, with the reason beside it. It must be stored there before it is taken from the queue.
    DeadLetter {
        /// What happened, for people.
        reason: String,
    },
}

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// Messages that are not settled yet, those in flight included.
    pub messages: u64,
    /// The age of the oldest of them, where the broker knows it.
    pub oldest: Option<Duration>,
}

impl Lag {
    /// So many messages.
    #[must_use]
    pub const fn new(messages: u64) -> Self {
        Self { messages, oldest: None }
    }

    /// The same with the age of the oldest.
    #[must_use]
    pub const fn oldest(mut self, age: Option<Duration>) -> Self {
        self.oldest = age;
        self
    }
}

/// Why an adapter could not do what it was asked.
#[derive(Debug)]
pub struct AdapterError {
    pub(crate) fault: AdapterFault,
    text: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What an adapter's error means for the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdapterFault {
    /// Trying again does not help: a human must change something.
    Refused,
    /// The broker cannot be reached, or has closed the connection.
    Unreachable,
    /// The delivery is not ours any more.
    Stale,
}

impl AdapterError {
    /// Settings, a queue or a permission that a human must change.
    pub fn refused(text: impl Into<String>) -> Self {
        Self { fault: AdapterFault::Refused, text: text.into(), source: None }
    }

    /// The broker cannot be reached, or has ended the connection or the channel.
    pub fn unreachable(text: impl Into<String>) -> Self {
        Self { fault: AdapterFault::Unreachable, text: text.into(), source: None }
    }

    /// The broker has taken the delivery back, and gives it to somebody again.
    pub fn stale(text: impl Into<String>) -> Self {
        Self { fault: AdapterFault::Stale, text: text.into(), source: None }
    }

    /// The same with the error behind it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What happened, with what is behind it.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.text.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for AdapterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for AdapterError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
