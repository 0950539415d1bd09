//! NATS JetStream: a durable pull consumer of a stream.
//!
//! `settings.rs` is what must hold before anything is consumed, `link.rs` the connection, `pull.rs` how deliveries come.

mod link;
mod pull;
mod settings;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::{ConnectOptions, HeaderMap, HeaderName, HeaderValue, Subject, header};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Adapter, AdapterError, Connected, Delivery, Lag, Retries, Settlement};

use link::{ANSWER, Link};
use pull::Connection;

/// How long a delivery is hidden from others, where the adapter creates the consumer.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// How long it may take to end a connection.
const CLOSING: Duration = Duration::from_secs(3);

/// As many characters of a reason go into a header; the server bounds what a message may weigh with its headers.
const REASON: usize = 2_000;

/// A durable pull consumer of a JetStream stream.
///
/// A delivery is acknowledged with the server's confirmation, after the commit. The stream and the consumer are the
/// application's to create, but for [`create_consumer`](Self::create_consumer). The subject of a message is its header
/// `Nats-Subject`, for routes.
///
/// ```no_run,standalone_crate
/// # async fn run(pool: sqlx::Pool<sqlx::Sqlite>) -> Result<(), idem_runtime::Error> {
/// use idem_runtime::{Consumer, Engine, NatsJetStream, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// #[derive(serde::Deserialize)]
/// struct Paid {
///     order_id: String,
/// }
///
/// #[idempotent(key(msg.order_id), retention = "15d", redelivery(stream = "7d", by_hand = "7d"))]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     sqlx::query("INSERT INTO credit VALUES (?)").bind(&msg.order_id).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// let engine = Engine::start(pool).await?;
/// let payments = NatsJetStream::new("nats://127.0.0.1:4222", "PAYMENTS", "credit")
///     .create_consumer()
///     .dead_letter_subject("parked.payments");
/// let consuming = Consumer::new(&engine, payments).handler::<credit>().strict().start().await?;
/// # consuming.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct NatsJetStream {
    servers: String,
    stream: String,
    consumer: String,
    options: ConnectOptions,
    dead_letters: String,
    creates_consumer: bool,
    connection: watch::Sender<Option<Arc<Connection>>>,
}

/// What a message of a [`NatsJetStream`] is settled with.
#[derive(Debug, Clone)]
pub struct NatsReceipt {
    ack: Subject,
    /// Names the message in its stream.
    sequence: u64,
    published: async_nats::datetime::DateTime,
    /// When the stream was created: one that was deleted and made anew has other messages under the same numbers.
    stream_created: async_nats::datetime::DateTime,
}

impl NatsJetStream {
    /// The consumer of this name on this stream. Several servers of a cluster are separated by commas; a user and a password
    /// may be in the URL, without characters that would have to be escaped.
    #[must_use]
    pub fn new(servers: impl Into<String>, stream: impl Into<String>, durable_consumer: impl Into<String>) -> Self {
        let stream = stream.into();
        Self {
            servers: servers.into(),
            consumer: durable_consumer.into(),
            options: ConnectOptions::new(),
            dead_letters: format!("dead-letters.{stream}"),
            creates_consumer: false,
            connection: watch::Sender::new(None),
            stream,
        }
    }

    /// How to connect: credentials, TLS, a name. The adapter sets the event callback and the number of reconnects itself,
    /// since it must hear of the connection's end and connects anew on its own.
    #[must_use]
    pub fn connect_options(mut self, options: ConnectOptions) -> Self {
        self.options = options;
        self
    }

    /// Where dead letters go. Default: `dead-letters.` and the stream's name. If no stream takes this subject, the adapter
    /// creates one when it connects, named like the consumed one with `_dead` behind, without limits.
    #[must_use]
    pub fn dead_letter_subject(mut self, subject: impl Into<String>) -> Self {
        self.dead_letters = subject.into();
        self
    }

    /// Creates the durable consumer if it is not there: every message of the stream from the oldest on, acknowledged one by
    /// one, delivered again after 30 seconds and for as long as it takes. A consumer that is there is left as it is.
    #[must_use]
    pub fn create_consumer(mut self) -> Self {
        self.creates_consumer = true;
        self
    }

    fn connection(&self) -> Result<Arc<Connection>, AdapterError> {
        self.connection.borrow().clone().ok_or_else(|| AdapterError::unreachable("not connected to the server yet"))
    }

    async fn open(&self) -> Result<(Connection, Connected), AdapterError> {
        let link = Link::open(&self.servers, self.options.clone()).await?;
        let stream = settings::stream(&link, &self.stream).await?;
        let consumer = settings::consumer(&link, &self.stream, &self.consumer, self.creates_consumer).await?;
        settings::dead_letters(&link, &stream, &self.dead_letters).await?;
        settings::permissions(&link, &self.stream, &self.consumer).await?;
        let connected = settings::connected(&stream.config, &consumer.config);
        settings::warn_of_limits(&stream.config, &self.source());
        Ok((Connection::new(link, consumer, stream.created).await?, connected))
    }
}

impl Adapter for NatsJetStream {
    type Receipt = NatsReceipt;

    const BROKER: &'static str = "nats";

    const RETRIES: Retries = Retries::ByBroker;

    fn source(&self) -> String {
        format!("{}/{}", self.stream, self.consumer)
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        self.close().await;
        let opened = timeout(ANSWER * 2, self.open()).await;
        let (connection, connected) = opened.map_err(|_| link::silent())??;
        self.connection.send_replace(Some(Arc::new(connection)));
        Ok(connected)
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<NatsReceipt>>, AdapterError> {
        self.connection()?.receive(max).await
    }

    async fn settle(&self, delivery: &Delivery<NatsReceipt>, how: &Settlement) -> Result<(), AdapterError> {
        let (connection, receipt) = (self.connection()?, &delivery.receipt);
        match how {
            Settlement::Ack => connection.acknowledge(receipt, AckKind::Ack).await?,
            Settlement::Retry { after } => return connection.acknowledge(receipt, again(*after)).await,
            Settlement::Release { after } => {
                connection.acknowledge(receipt, again(*after)).await?;
                connection.released(receipt.sequence);
                return Ok(());
            }
            Settlement::DeadLetter { reason } => {
                connection.check_stream(receipt)?;
                self.park(&connection, delivery, reason).await?;
                connection.acknowledge(receipt, AckKind::Ack).await?;
            }
        }
        connection.done(receipt.sequence);
        Ok(())
    }

    async fn extend(&self, receipt: &NatsReceipt) -> Result<(), AdapterError> {
        self.connection()?.acknowledge(receipt, AckKind::Progress).await
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        let info = settings::consumer_info(&self.connection()?.link, &self.stream, &self.consumer).await?;
        Ok(info.map(|info| Lag::new(info.num_pending.saturating_add(u64::try_from(info.num_ack_pending).unwrap_or(0)))))
    }

    async fn close(&self) {
        if let Some(connection) = self.connection.send_replace(None) {
            // What a server that hangs was not given back comes again by itself.
            drop(timeout(CLOSING, connection.close()).await);
        }
    }
}

impl NatsJetStream {
    /// Returns when the stream of the dead letters has stored it.
    async fn park(
        &self,
        connection: &Connection,
        delivery: &Delivery<NatsReceipt>,
        reason: &str,
    ) -> Result<(), AdapterError> {
        let headers = self.parked(delivery, reason);
        let (context, body) = (&connection.link.context, delivery.message.body.clone());
        let publishing =
            async { context.publish_with_headers(self.dead_letters.clone(), headers, body.into()).await?.await };
        let published = connection.link.within(ANSWER, &self.dead_letters, publishing).await?;
        let Err(error) = published else { return Ok(()) };
        let text = match error.kind() {
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe | PublishErrorKind::MaxAckPending => {
                return Err(AdapterError::unreachable("the server did not say that it has stored the dead letter"));
            }
            PublishErrorKind::StreamNotFound => "no stream takes the subject of the dead letters",
            PublishErrorKind::MaxPayloadExceeded => {
                "with its reason the message is larger than the server takes: raise `max_payload`"
            }
            _ => "the stream of the dead letters did not take the message",
        };
        Err(AdapterError::refused(text).because(error.to_string()))
    }

    /// The headers of a dead letter.
    fn parked(&self, delivery: &Delivery<NatsReceipt>, reason: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name: &str, value: &str| {
            // Those that came by the wire are valid.
            if let (Ok(name), Ok(value)) = (HeaderName::from_str(name), HeaderValue::from_str(value)) {
                headers.insert(name, value);
            }
        };
        for (name, value) in &delivery.message.headers {
            // The server would act on its own ones once more: drop the message as sent before, or purge the stream. Nor may
            // their whole names be in another name: the server then does not find the id below.
            match name.split_at_checked(5) {
                Some((prefix, rest)) if prefix.eq_ignore_ascii_case("nats-") => {
                    put(&format!("idem-original-{rest}"), value);
                }
                _ => put(name, value),
            }
        }
        let on_one_line: String = reason.replace(['\r', '\n'], " ").chars().take(REASON).collect();
        put("idem-reason", &on_one_line);
        let NatsReceipt { sequence, published, .. } = &delivery.receipt;
        // Parked again, because the acknowledgement was lost, it is the same dead letter.
        let id = format!("idem {} {} {sequence} {published:?}", self.stream, self.consumer);
        put(header::NATS_MESSAGE_ID.as_ref(), &id);
        headers
    }
}

impl fmt::Debug for NatsJetStream {
    /// Without the servers, whose URL can hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsJetStream")
            .field("stream", &self.stream)
            .field("consumer", &self.consumer)
            .field("dead_letters", &self.dead_letters)
            .finish_non_exhaustive()
    }
}

fn again(after: Duration) -> AckKind {
    AckKind::Nak((!after.is_zero()).then_some(after))
}
