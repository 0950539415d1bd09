//! RabbitMQ, over AMQP 0-9-1.
//!
//! `link.rs` is one connection, `dead.rs` stores dead letters, `message.rs` translates headers and properties.

mod dead;
mod link;
mod message;

use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use lapin::types::ShortString;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Acker, BasicProperties, ErrorKind};

use super::{Adapter, AdapterError, Connected, Delivery, Lag, Retries, Settlement};
use link::{Link, Place};

/// How long connecting may take, all in all.
const CONNECTING: Duration = Duration::from_secs(10);

/// A queue of RabbitMQ's, of any type.
///
/// Deliveries are acknowledged one by one, after the commit, and never automatically: there is no setting for that. What
/// the consumer has no room for stays in the queue. A failed delivery waits for its next attempt in this process, since
/// RabbitMQ cannot hold one back; ended with the process, or with the connection, it comes again at once.
///
/// RabbitMQ closes the channel of a consumer that has not acknowledged a delivery within the broker's `consumer_timeout`, 30
/// minutes by default, and delivers all it had again. Nothing extends that time. The consumer connects anew, and what was
/// committed meanwhile is a duplicate.
///
/// ```no_run
/// use idem_runtime::{Consumer, Engine, RabbitMq, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// #[derive(serde::Deserialize)]
/// struct Paid {
///     order_id: String,
/// }
///
/// #[idempotent(key(msg.order_id), retention = "7d", redelivery(queue = "2d"))]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     sqlx::query("INSERT INTO credit VALUES (?)").bind(&msg.order_id).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// # async fn run(engine: Engine<Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
/// let url = std::env::var("AMQP_URL")?; // amqp://user:password@host:5672/vhost, the default vhost being `/%2f`
/// let payments = RabbitMq::new(url, "payments").dead_letter_queue("payments.parked");
/// let consuming = Consumer::new(&engine, payments).handler::<credit>().start().await?;
/// // … until the application ends:
/// consuming.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct RabbitMq {
    url: String,
    queue: String,
    dead: Option<String>,
    /// As many deliveries as were ever asked for at once.
    prefetch: AtomicU16,
    link: Mutex<Option<Arc<Link>>>,
}

/// What a delivery of RabbitMQ's is settled with. It ends with the channel that the delivery came by.
#[derive(Clone)]
pub struct RabbitMqReceipt(Arc<Taken>);

/// What a delivery leaves behind that is not part of the message.
struct Taken {
    acker: Acker,
    properties: BasicProperties,
    /// Gone when the adapter has connected anew, and with it the tag's meaning. [B48]
    link: Weak<Link>,
}

impl RabbitMq {
    /// Consumes this queue, which must be there: `amqp://user:password@host:5672/vhost`, and `amqps://…` with the feature
    /// `rabbitmq-tls`. The default virtual host is written `%2f`.
    #[must_use]
    pub fn new(url: impl Into<String>, queue: impl Into<String>) -> Self {
        let (url, queue) = (url.into(), queue.into());
        Self { url, queue, dead: None, prefetch: AtomicU16::new(1), link: Mutex::default() }
    }

    /// Where dead letters are parked. Default: the queue's name with `.dead` behind it. It is created, durable, unless it is
    /// there.
    #[must_use]
    pub fn dead_letter_queue(mut self, queue: impl Into<String>) -> Self {
        self.dead = Some(queue.into());
        self
    }

    fn place(&self) -> Result<Place, AdapterError> {
        let dead = self.dead.clone().unwrap_or_else(|| format!("{}.dead", self.queue));
        if dead == self.queue {
            return Err(AdapterError::refused(
                "dead letters would go to the queue itself, and come again: name another queue for them",
            ));
        }
        Ok(Place { uri: parsed(&self.url)?, queue: short(&self.queue)?, dead: short(&dead)? })
    }

    fn link(&self) -> Result<Arc<Link>, AdapterError> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.ok_or_else(|| AdapterError::unreachable("there is no connection to RabbitMQ"))
    }

    fn put_link(&self, link: Option<Arc<Link>>) -> Option<Arc<Link>> {
        std::mem::replace(&mut *self.link.lock().unwrap_or_else(PoisonError::into_inner), link)
    }
}

/// The parser's own words could hold the password.
fn parsed(url: &str) -> Result<AMQPUri, AdapterError> {
    let Ok(uri) = url.parse::<AMQPUri>() else {
        return Err(AdapterError::refused(
            "the URL is not one of AMQP's: `amqp://user:password@host:5672/vhost`, each part percent-encoded",
        ));
    };
    // The client would take another host.
    if url.contains("://[") || url.contains("@[") {
        return Err(AdapterError::refused(
            "the URL names the host by an IPv6 address: write a host name that stands for it",
        ));
    }
    // The client would go on without encryption.
    if uri.scheme == AMQPScheme::AMQPS && !cfg!(feature = "rabbitmq-tls") {
        return Err(AdapterError::refused("`amqps` is encrypted: build idem-runtime with the feature `rabbitmq-tls`"));
    }
    Ok(uri)
}

fn short(queue: &str) -> Result<ShortString, AdapterError> {
    match ShortString::try_new(queue) {
        Ok(name) if !queue.is_empty() => Ok(name),
        _ => Err(AdapterError::refused("a queue's name is 1 to 255 bytes")),
    }
}

/// The error behind ours, told once.
fn because(error: AdapterError, cause: &lapin::Error) -> AdapterError {
    match cause.kind() {
        ErrorKind::ProtocolError(cause) => error.because(cause.clone()),
        ErrorKind::IOError(cause) => error.because(Arc::clone(cause)),
        _ => error.because(cause.clone()),
    }
}

fn stale() -> AdapterError {
    AdapterError::stale("the channel that the delivery came by has ended, and RabbitMQ delivers it again")
}

impl Adapter for RabbitMq {
    type Receipt = RabbitMqReceipt;

    const BROKER: &'static str = "rabbitmq";

    const RETRIES: Retries = Retries::InProcess;

    fn source(&self) -> String {
        self.queue.clone()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        let place = self.place()?;
        if let Some(old) = self.put_link(None) {
            old.close().await;
        }
        let opening = Link::open(place, self.prefetch.load(Ordering::Relaxed));
        let opened = tokio::time::timeout(CONNECTING, opening).await;
        let link = opened.unwrap_or_else(|_| {
            Err(AdapterError::unreachable(format!("RabbitMQ did not answer within {} seconds", CONNECTING.as_secs())))
        })?;
        self.put_link(Some(link));
        // Neither a lease nor a horizon is told over AMQP.
        Ok(Connected::new())
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<RabbitMqReceipt>>, AdapterError> {
        let link = self.link()?;
        let wanted = u16::try_from(max).unwrap_or(u16::MAX).max(1);
        self.prefetch.fetch_max(wanted, Ordering::Relaxed);
        Link::widen(&link, wanted).await?;
        let deliveries = link.take(max.max(1)).await?;
        let delivery = |mut taken: lapin::message::Delivery| {
            let (message, attempt) = (message::incoming(&mut taken), message::attempt(&taken));
            let receipt = Taken { acker: taken.acker, properties: taken.properties, link: Arc::downgrade(&link) };
            Delivery::new(message, attempt, RabbitMqReceipt(Arc::new(receipt)))
        };
        Ok(deliveries.into_iter().map(delivery).collect())
    }

    async fn settle(&self, delivery: &Delivery<RabbitMqReceipt>, how: &Settlement) -> Result<(), AdapterError> {
        let taken = &delivery.receipt.0;
        let link = taken.held()?;
        match how {
            Settlement::Ack => link.ack(&taken.acker).await,
            Settlement::Retry { after } | Settlement::Release { after } if after.is_zero() => {
                link.give_back(&taken.acker).await
            }
            Settlement::Retry { after } | Settlement::Release { after } => {
                Link::give_back_after(&link, taken.acker.clone(), *after);
                Ok(())
            }
            Settlement::DeadLetter { reason } => {
                link.dead.store(&self.queue, &taken.properties, &delivery.message.body, reason).await?;
                link.ack(&taken.acker).await
            }
        }
    }

    async fn ack_all(&self, deliveries: &[Delivery<RabbitMqReceipt>]) -> Vec<Result<(), AdapterError>> {
        let of_current = |link: &Arc<Link>| deliveries.iter().all(|delivery| delivery.receipt.0.is_of(link));
        match self.link() {
            Ok(link) if of_current(&link) => {
                let ackers: Vec<_> = deliveries.iter().map(|delivery| &delivery.receipt.0.acker).collect();
                link.ack_all(&ackers).await
            }
            // Some came before a reconnect, and their tags mean other messages on this link.
            _ => join_all(deliveries.iter().map(|delivery| self.settle(delivery, &Settlement::Ack))).await,
        }
    }

    async fn extend(&self, receipt: &RabbitMqReceipt) -> Result<(), AdapterError> {
        receipt.0.held().map(drop)
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        self.link()?.unsettled().await.map(|messages| Some(Lag::new(messages)))
    }

    async fn close(&self) {
        if let Some(link) = self.put_link(None) {
            link.close().await;
        }
    }
}

impl Taken {
    fn is_of(&self, link: &Arc<Link>) -> bool {
        std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link))
    }

    /// The link, if the delivery is still this consumer's to settle.
    fn held(&self) -> Result<Arc<Link>, AdapterError> {
        self.link.upgrade().filter(|_| self.acker.usable()).ok_or_else(stale)
    }
}

/// Without the URL, which holds a password.
impl fmt::Debug for RabbitMq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMq").field("queue", &self.queue).field("dead", &self.dead).finish_non_exhaustive()
    }
}

impl fmt::Debug for RabbitMqReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqReceipt").field("usable", &self.0.acker.usable()).finish_non_exhaustive()
    }
}
