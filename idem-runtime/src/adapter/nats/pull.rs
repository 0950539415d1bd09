//! How deliveries come, and what is said of them: one request for messages at a time, for no more than there is room for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{self, PullConsumer, pull};
use async_nats::jetstream::{self, AckKind};
use async_nats::{Request, RequestErrorKind, StatusCode, Subject, Subscriber, header};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::NatsReceipt;
use super::link::{ANSWER, Link};
use crate::adapter::{AdapterError, Delivery, Incoming};
use crate::clock;

/// How long the server keeps a request while the stream is empty. What is closed meanwhile waits as long.
const EXPIRES: Duration = Duration::from_secs(1);

/// How much later than that its end may come.
const LATE: Duration = Duration::from_secs(2);

/// The pause after a request that the server ended at once, with nothing.
const PAUSE: Duration = Duration::from_millis(250);

/// For as many messages it is remembered how often they were released.
const RELEASED: usize = 10_000;

/// A link, and a consumer on it.
pub(super) struct Connection {
    pub(super) link: Link,
    consumer: PullConsumer,
    stream_created: async_nats::datetime::DateTime,
    inbox: Subject,
    pull: tokio::sync::Mutex<Pull>,
    /// How often each message was released, by its number: the server counts that as a delivery.
    released: Mutex<BTreeMap<u64, u32>>,
}

struct Pull {
    subscriber: Subscriber,
    /// As many messages may still come for the request that is under way.
    expected: usize,
    /// What came while nobody waited, or more than was asked for.
    arrived: VecDeque<Delivery<NatsReceipt>>,
}

impl Connection {
    pub(super) async fn new(
        link: Link,
        info: consumer::Info,
        stream_created: async_nats::datetime::DateTime,
    ) -> Result<Self, AdapterError> {
        let inbox = Subject::from(link.client.new_inbox());
        let subscribing = link.within(ANSWER, &inbox, link.client.subscribe(inbox.clone()));
        let subscriber = subscribing.await?.map_err(|error| {
            AdapterError::unreachable("the server cannot be asked for messages").because(error.to_string())
        })?;
        let config = pull::Config {
            max_batch: info.config.max_batch,
            max_expires: info.config.max_expires,
            ..Default::default()
        };
        Ok(Self {
            consumer: PullConsumer::new(config, info, link.context.clone()),
            link,
            stream_created,
            inbox,
            pull: tokio::sync::Mutex::new(Pull { subscriber, expected: 0, arrived: VecDeque::new() }),
            released: Mutex::default(),
        })
    }

    /// Waits until one message is there at least, and takes those that come along.
    pub(super) async fn receive(&self, max: usize) -> Result<Vec<Delivery<NatsReceipt>>, AdapterError> {
        let mut pull = self.pull.lock().await;
        let began = clock::monotonic();
        if pull.arrived.is_empty() && pull.expected == 0 {
            pull.expected = self.request(max).await?;
        }
        while pull.expected > 0 && pull.arrived.len() < max {
            let patience = if pull.arrived.is_empty() { EXPIRES + LATE } else { Duration::ZERO };
            match self.next(&mut pull, patience).await {
                Ok(()) => {}
                Err(error) if pull.arrived.is_empty() => return Err(error),
                // Said by the next call, if it lasts.
                Err(_) => break,
            }
        }
        if pull.arrived.is_empty() && began.elapsed() < PAUSE {
            tokio::time::sleep(PAUSE).await;
        }
        let number = pull.arrived.len().min(max);
        Ok(pull.arrived.drain(..number).collect())
    }

    /// Asks for messages, and says for how many: those that are there, or the first one to come.
    async fn request(&self, max: usize) -> Result<usize, AdapterError> {
        let config = &self.consumer.cached_info().config;
        let most = usize::try_from(config.max_batch).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
        let longest = if config.max_expires.is_zero() { EXPIRES } else { EXPIRES.min(config.max_expires) };
        let batch = max.clamp(1, most);
        let request = pull::BatchConfig { batch, expires: Some(longest), no_wait: true, ..Default::default() };
        let asking = self.consumer.request_batch(request, self.inbox.clone());
        self.link.within(ANSWER, &self.next_subject(), asking).await?.map_err(|error| {
            AdapterError::unreachable("the server cannot be asked for messages").because(error.to_string())
        })?;
        Ok(batch)
    }

    /// Takes the next thing that the server says for the request that is under way.
    async fn next(&self, pull: &mut Pull, patience: Duration) -> Result<(), AdapterError> {
        let subject = self.next_subject();
        let coming = timeout(patience, pull.subscriber.next());
        let message = match self.link.within(patience * 2 + LATE, &subject, coming).await? {
            Ok(Some(message)) => message,
            Ok(None) => return Err(AdapterError::unreachable("the connection to the server has ended")),
            // The server says nothing to a request to a consumer that it does not have.
            Err(_) => {
                return Err(AdapterError::unreachable(
                    "the server did not answer the request for messages: it hangs, or the consumer was deleted",
                ));
            }
        };
        match message.status.unwrap_or(StatusCode::OK) {
            StatusCode::OK => {
                if let Some(delivery) = self.delivery(message) {
                    pull.expected -= 1;
                    pull.arrived.push_back(delivery);
                }
            }
            StatusCode::IDLE_HEARTBEAT => {}
            StatusCode::TIMEOUT | StatusCode::NOT_FOUND => pull.expected = 0,
            status => {
                pull.expected = 0;
                let text = message.description.unwrap_or_default();
                // Other consumers hold or wait for as much as is allowed: not for us to end.
                if text.starts_with("Exceeded MaxAckPending") || text.starts_with("Exceeded MaxWaiting") {
                    return Ok(());
                }
                let error = match status {
                    StatusCode::NO_RESPONDERS => AdapterError::unreachable("the consumer is not there any more"),
                    _ => AdapterError::unreachable("the server ended the request for messages"),
                };
                return Err(error.because(format!("{status} {text}")));
            }
        }
        Ok(())
    }

    fn delivery(&self, message: async_nats::Message) -> Option<Delivery<NatsReceipt>> {
        let message = jetstream::Message { message, context: self.link.context.clone() };
        // Whatever else somebody sends to the inbox is none of ours.
        let info = message.info().ok()?;
        let receipt = NatsReceipt {
            ack: message.reply.clone()?,
            sequence: info.stream_sequence,
            published: info.published,
            stream_created: self.stream_created,
        };
        let delivered = u32::try_from(info.delivered).unwrap_or(u32::MAX);
        let attempt = delivered.saturating_sub(self.releases(receipt.sequence)).max(1);
        let mut incoming = Incoming::new(message.payload.to_vec());
        for (name, values) in message.headers.iter().flat_map(async_nats::HeaderMap::iter) {
            let values: Vec<_> = values.iter().map(async_nats::HeaderValue::as_str).collect();
            incoming = incoming.with_header(name.to_string(), values.join(", "));
        }
        let incoming = incoming.with_header(header::NATS_SUBJECT.to_string(), message.subject.to_string());
        Some(Delivery::new(incoming, attempt, receipt))
    }

    /// Tells the server what became of a delivery, and waits until it has heard.
    pub(super) async fn acknowledge(&self, receipt: &NatsReceipt, kind: AckKind) -> Result<(), AdapterError> {
        self.check_stream(receipt)?;
        let request = Request::new().payload(kind.into());
        let telling = self.link.client.send_request(receipt.ack.clone(), request);
        match self.link.within(ANSWER, &receipt.ack, telling).await? {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Err(AdapterError::unreachable(
                "nobody hears what became of the delivery: the consumer was deleted, or the server is starting",
            )),
            Err(error) => Err(AdapterError::unreachable("the server did not answer").because(error.to_string())),
        }
    }

    /// An acknowledgement names a message by its number, and would settle an unread one of a stream that was made anew.
    pub(super) fn check_stream(&self, receipt: &NatsReceipt) -> Result<(), AdapterError> {
        if receipt.stream_created == self.stream_created {
            return Ok(());
        }
        Err(AdapterError::stale("the stream was deleted and made anew; this delivery is of the former one"))
    }

    pub(super) fn released(&self, sequence: u64) {
        let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        *released.entry(sequence).or_default() += 1;
        if released.len() > RELEASED {
            released.pop_first();
        }
    }

    pub(super) fn done(&self, sequence: u64) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).remove(&sequence);
    }

    fn releases(&self, sequence: u64) -> u32 {
        let released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        released.get(&sequence).copied().unwrap_or(0)
    }

    fn next_subject(&self) -> String {
        let info = self.consumer.cached_info();
        format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", info.stream_name, info.name)
    }

    /// Gives back what came and was not fetched, and ends the connection.
    pub(super) async fn close(&self) {
        let mut pull = self.pull.lock().await;
        while pull.expected > 0 && self.next(&mut pull, EXPIRES * 2).await.is_ok() {}
        while let Some(delivery) = pull.arrived.pop_front() {
            if self.acknowledge(&delivery.receipt, AckKind::Nak(None)).await.is_err() {
                break;
            }
        }
        self.link.close().await;
    }
}
