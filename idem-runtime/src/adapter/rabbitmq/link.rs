//! One connection: what arrives by it, and what is said of that.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::join_all;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::types::{FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{Acker, Channel, Connection, ConnectionProperties, Consumer, ErrorKind};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::AdapterError;
use super::dead::DeadLetters;
use super::{because, stale};

/// How long RabbitMQ may take to take its leave.
const CLOSING: Duration = Duration::from_secs(3);

/// Where to connect to, and which queues.
pub(super) struct Place {
    pub(super) uri: AMQPUri,
    pub(super) queue: ShortString,
    pub(super) dead: ShortString,
}

/// A connection, from one `connect` of the adapter to the next.
pub(super) struct Link {
    connection: Connection,
    queue: ShortString,
    /// Deliveries, and their acknowledgements.
    channel: Channel,
    /// Questions, whose answer can be the end of the channel.
    questions: Channel,
    arrivals: Mutex<Arrivals>,
    /// The number of deliveries that were handed out and are not settled.
    out: AtomicUsize,
    widening: tokio::sync::Mutex<()>,
    /// What waits here before it is given back.
    held_back: Mutex<JoinSet<()>>,
    pub(super) dead: DeadLetters,
}

/// What has arrived and was not handed out: at most the prefetch, which never is more than the consumer has room for.
struct Arrivals {
    consumer: Consumer,
    prefetch: u16,
    waiting: VecDeque<Delivery>,
    /// Why nothing will arrive any more.
    ended: Option<Option<lapin::Error>>,
    /// Whoever waits for the next one.
    waker: Option<Waker>,
}

impl Link {
    /// Connects, and consumes with this prefetch.
    pub(super) async fn open(place: Place, prefetch: u16) -> Result<Arc<Self>, AdapterError> {
        let Place { uri, queue, dead } = place;
        let connection = connect(&uri, &format!("idem, {queue}")).await.map_err(|error| refused(&error))?;
        let opened = async {
            let questions = look_for(&connection, &queue, &dead).await?;
            let channel = connection.create_channel().await?;
            let consumer = consume(&channel, &queue, prefetch).await?;
            Ok((questions, channel, consumer))
        };
        let opened: Result<_, lapin::Error> = opened.await;
        let (questions, channel, consumer) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                close(&connection).await;
                return Err(refused(&error));
            }
        };
        let arrivals = Arrivals { consumer, prefetch, waiting: VecDeque::new(), ended: None, waker: None };
        Ok(Arc::new(Self {
            connection,
            queue,
            channel,
            questions,
            arrivals: Mutex::new(arrivals),
            out: AtomicUsize::new(0),
            widening: tokio::sync::Mutex::default(),
            held_back: Mutex::default(),
            dead: DeadLetters::new(uri, dead),
        }))
    }

    /// Has RabbitMQ send up to so many deliveries ahead of their acknowledgement. A consumer's prefetch is for good, so it
    /// is replaced by another consumer.
    pub(super) async fn widen(link: &Arc<Self>, wanted: u16) -> Result<(), AdapterError> {
        if link.arrivals().prefetch >= wanted {
            return Ok(());
        }
        let link = Arc::clone(link);
        // To its end, even if nobody waits for it any more: half of it would leave deliveries to nobody.
        let widened = tokio::spawn(async move {
            let _one_at_a_time = link.widening.lock().await;
            link.replace_consumer(wanted).await
        });
        match widened.await {
            Ok(widened) => widened.map_err(|error| ended(&error)),
            Err(error) => Err(AdapterError::unreachable("the runtime ends").because(error)),
        }
    }

    async fn replace_consumer(&self, wanted: u16) -> Result<(), lapin::Error> {
        let tag = match self.arrivals() {
            arrivals if arrivals.prefetch >= wanted || arrivals.ended.is_some() => return Ok(()),
            arrivals => arrivals.consumer.tag(),
        };
        self.channel.basic_cancel(tag, BasicCancelOptions::default()).await?;
        // What arrived before the end counts for the channel, not for the next consumer.
        let had = {
            let mut arrivals = self.arrivals();
            arrivals.drain(&mut Context::from_waker(Waker::noop()));
            arrivals.waiting.len() + self.out.load(Ordering::Relaxed)
        };
        let prefetch = wanted.saturating_sub(u16::try_from(had).unwrap_or(u16::MAX)).max(1);
        let consumer = consume(&self.channel, &self.queue, prefetch).await?;
        let mut arrivals = self.arrivals();
        // The former consumer's end is none of the link's.
        (arrivals.consumer, arrivals.prefetch, arrivals.ended) = (consumer, wanted, None);
        Ok(())
    }

    /// Waits for one delivery, and takes what is there with it. What is not returned is there for the next call.
    pub(super) async fn take(&self, max: usize) -> Result<Vec<Delivery>, AdapterError> {
        poll_fn(|cx| {
            let mut arrivals = self.arrivals();
            arrivals.waker = Some(cx.waker().clone());
            arrivals.drain(cx);
            // The end of the channel is the end of what it brought.
            arrivals.waiting.retain(|delivery| delivery.acker.usable());
            if !arrivals.waiting.is_empty() {
                let number = arrivals.waiting.len().min(max);
                self.out.fetch_add(number, Ordering::Relaxed);
                return Poll::Ready(Ok(arrivals.waiting.drain(..number).collect()));
            }
            match &arrivals.ended {
                None => Poll::Pending,
                Some(None) => Poll::Ready(Err(AdapterError::unreachable(
                    "RabbitMQ ended the consumer: was the queue deleted, or has the node that holds it gone?",
                ))),
                Some(Some(error)) => Poll::Ready(Err(ended(error))),
            }
        })
        .await
    }

    pub(super) async fn ack(&self, acker: &Acker) -> Result<(), AdapterError> {
        self.said(acker.ack(BasicAckOptions { multiple: false }).await).await
    }

    /// The same for many, and says of each what came of it: one question behind all of them.
    pub(super) async fn ack_all(&self, ackers: &[&Acker]) -> Vec<Result<(), AdapterError>> {
        let sent = join_all(ackers.iter().map(|acker| acker.ack(BasicAckOptions { multiple: false }))).await;
        let heard = self.heard().await;
        let said = |sent| match (sent, &heard) {
            (Ok(true), Ok(())) => {
                self.out.fetch_sub(1, Ordering::Relaxed);
                Ok(())
            }
            (Ok(false), _) => Err(stale()),
            (Err(error), _) => Err(because(stale(), &error)),
            (Ok(true), Err(error)) => Err(because(stale(), error)),
        };
        sent.into_iter().map(said).collect()
    }

    /// RabbitMQ delivers it again, at once.
    pub(super) async fn give_back(&self, acker: &Acker) -> Result<(), AdapterError> {
        self.said(acker.nack(BasicNackOptions { multiple: false, requeue: true }).await).await
    }

    /// Keeps it, unsettled, for so long before it is given back, since RabbitMQ would deliver it at once. As many can be
    /// kept as the prefetch allows. The end of the link gives them back earlier.
    pub(super) fn give_back_after(link: &Arc<Self>, acker: Acker, after: Duration) {
        let from = Arc::downgrade(link);
        let mut held_back = link.held_back.lock().unwrap_or_else(PoisonError::into_inner);
        while held_back.try_join_next().is_some() {}
        held_back.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(link) = from.upgrade() {
                // What cannot be given back any more comes again all the same.
                drop(link.give_back(&acker).await);
            }
        });
    }

    /// AMQP does not answer an acknowledgement. It answers a question behind it, which says that the former was heard.
    async fn said(&self, sent: Result<bool, lapin::Error>) -> Result<(), AdapterError> {
        let was_usable = sent.map_err(|error| because(stale(), &error))?;
        if !was_usable {
            return Err(stale());
        }
        self.heard().await.map_err(|error| because(stale(), &error))?;
        self.out.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns when RabbitMQ has come to all that was sent on the channel before, and what it sent by then has arrived.
    async fn heard(&self) -> Result<(), lapin::Error> {
        let prefetch = self.arrivals().prefetch;
        // Says what is the case already.
        self.channel.basic_qos(prefetch, BasicQosOptions { global: false }).await
    }

    /// How many messages are ready, and how many this consumer has. Those that others have are nowhere to be seen.
    pub(super) async fn unsettled(&self) -> Result<u64, AdapterError> {
        let before = self.had();
        let passive = QueueDeclareOptions::default().passive();
        let asked = self.questions.queue_declare(self.queue.clone(), passive, FieldTable::default()).await;
        let ready = asked.map_err(|error| ended(&error))?.message_count();
        // What had left the queue when it was asked has arrived then; what is given back meanwhile was here before.
        self.heard().await.map_err(|error| ended(&error))?;
        let had = before.max(self.had());
        Ok(u64::from(ready).saturating_add(u64::try_from(had).unwrap_or(u64::MAX)))
    }

    fn had(&self) -> usize {
        let mut arrivals = self.arrivals();
        let waker = arrivals.waker.clone().unwrap_or_else(|| Waker::noop().clone());
        let known = arrivals.waiting.len();
        // On behalf of whoever waits, who is woken by what comes next.
        arrivals.drain(&mut Context::from_waker(&waker));
        if arrivals.waiting.len() > known || arrivals.ended.is_some() {
            waker.wake();
        }
        arrivals.waiting.len() + self.out.load(Ordering::Relaxed)
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn close(&self) {
        let mut held_back = std::mem::take(&mut *self.held_back.lock().unwrap_or_else(PoisonError::into_inner));
        held_back.shutdown().await;
        tokio::join!(close(&self.connection), self.dead.close());
    }
}

impl Arrivals {
    fn drain(&mut self, cx: &mut Context<'_>) {
        while self.ended.is_none() {
            match Pin::new(&mut self.consumer).poll_next(cx) {
                Poll::Ready(Some(Ok(delivery))) => self.waiting.push_back(delivery),
                Poll::Ready(Some(Err(error))) => self.ended = Some(Some(error)),
                Poll::Ready(None) => self.ended = Some(None),
                Poll::Pending => break,
            }
        }
    }
}

pub(super) async fn connect(uri: &AMQPUri, name: &str) -> Result<Connection, lapin::Error> {
    // No recovery by the client: what it had received would be settled under tags that mean other messages by then.
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    Connection::connect_uri(uri.clone(), properties).await
}

/// Ends a connection. What was delivered on it and not settled is delivered again.
pub(super) async fn close(connection: &Connection) {
    // One that has ended already is as good.
    drop(timeout(CLOSING, connection.close(200, "OK".into())).await);
}

/// Looks whether the queues are there, and creates the one for dead letters.
async fn look_for(connection: &Connection, queue: &ShortString, dead: &ShortString) -> Result<Channel, lapin::Error> {
    let (passive, none) = (QueueDeclareOptions::default().passive(), FieldTable::default());
    let mut questions = connection.create_channel().await?;
    questions.queue_declare(queue.clone(), passive, none.clone()).await?;
    match questions.queue_declare(dead.clone(), passive, none.clone()).await {
        // Which ends the channel.
        Err(error) if is_not_found(&error) => {
            questions = connection.create_channel().await?;
            questions.queue_declare(dead.clone(), QueueDeclareOptions::durable(), none).await?;
        }
        found => drop(found?),
    }
    Ok(questions)
}

async fn consume(channel: &Channel, queue: &ShortString, prefetch: u16) -> Result<Consumer, lapin::Error> {
    channel.basic_qos(prefetch, BasicQosOptions { global: false }).await?;
    // Never `no_ack`, by which RabbitMQ forgets a message when it sends it.
    let options = BasicConsumeOptions { no_ack: false, ..BasicConsumeOptions::default() };
    channel.basic_consume(queue.clone(), "".into(), options, FieldTable::default()).await
}

fn is_not_found(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error) if *error.kind() == AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND))
}

/// Why it could not be opened: what a human must change, and what may change by itself.
fn refused(error: &lapin::Error) -> AdapterError {
    let kind = match error.kind() {
        ErrorKind::ProtocolError(error) => Some(error.kind()),
        _ => None,
    };
    let refused = match kind {
        Some(AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND)) => {
            AdapterError::refused("the queue is not there: create it, and what is bound to it, before anybody consumes")
        }
        Some(AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)) => AdapterError::refused(
            "RabbitMQ refused the login or a permission: the user must be allowed to read the queue, to write to the \
             default exchange, `amq.default`, and to configure the queue for dead letters unless it is there",
        ),
        Some(AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED)) => AdapterError::refused(
            "RabbitMQ refused the virtual host: it must be there, and the user needs permissions in it; the default one is \
             written `/%2f`",
        ),
        Some(AMQPErrorKind::Soft(_)) => AdapterError::refused("RabbitMQ refused the queue as it is"),
        _ => AdapterError::unreachable("RabbitMQ could not be reached"),
    };
    because(refused, error)
}

/// Why nothing comes any more.
fn ended(error: &lapin::Error) -> AdapterError {
    let is_timeout = match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().as_str().contains("acknowledgement on channel"),
        _ => false,
    };
    let ended = match is_timeout {
        true => AdapterError::unreachable(
            "a delivery was not acknowledged within RabbitMQ's `consumer_timeout`, and all are delivered again: shorten \
             what handlers and their retries take, or lengthen it",
        ),
        false => AdapterError::unreachable("RabbitMQ ended the connection or the channel"),
    };
    because(ended, error)
}
