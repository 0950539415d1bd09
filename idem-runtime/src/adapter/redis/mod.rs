//! Redis Streams: a consumer group, whose list of pending entries is what is handed out and not acknowledged.
//!
//! `link.rs` connects and checks, `read.rs` receives, and the scripts in `lua` are what must be one step at the server.

mod link;
mod read;
mod scripts;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use redis::{RedisError, Script, ScriptInvocation};
use tokio::sync::Mutex;
use tokio::time::timeout;

use self::link::{Links, failed};
use self::read::Reading;
use self::scripts::{DONE, GONE};
use super::{Adapter, AdapterError, Connected, Delivery, Incoming, Lag, Retries, Settlement};
use crate::telemetry;

/// How long an entry is pending for a consumer that says nothing of it, before another one takes it.
const LEASE: Duration = Duration::from_secs(30);

/// How long one call waits for entries. Shorter than the consumer waits for its last call, so that a stop interrupts none.
const BLOCK: Duration = Duration::from_millis(400);

/// How long all that belongs to connecting may take, and all that belongs to the end.
const CONNECT: Duration = Duration::from_secs(9);
const CLOSE: Duration = Duration::from_secs(5);

/// The consumer of entries that were given back: nobody, so that anybody takes them.
const RELEASED: &str = "idem:released";

/// A stream of Redis, 6.2 or newer, or of Valkey, and a group of consumers on it.
///
/// An entry is a message: the field `body` is its body, every other field that is text a header. It stays pending in the
/// group until it is acknowledged; the adapter cannot be told to read without that (`NOACK`).
///
/// ```no_run
/// use std::time::Duration;
///
/// use idem_runtime::{Consumer, Engine, RedisStream, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// #[derive(serde::Deserialize)]
/// struct Paid {
///     order_id: String,
/// }
///
/// #[idempotent(key(msg.order_id), retention = "7d", redelivery(queue = "1d", replay = "2d"))]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     sqlx::query("INSERT INTO credit VALUES (?)").bind(&msg.order_id).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// # async fn consume(engine: Engine<Sqlite>) -> Result<(), idem_runtime::Error> {
/// let payments = RedisStream::new("redis://shop:secret@127.0.0.1:6379", "payments", "credit")
///     .create_group()
///     .lease(Duration::from_secs(60))
///     .dead_letter_stream("payments:dead");
/// let consuming = Consumer::new(&engine, payments).handler::<credit>().start().await?;
/// # consuming.stop().await;
/// # Ok(())
/// # }
/// ```
///
/// Permissions: `+xreadgroup +xack +xpending +xclaim +xautoclaim +xrange +xadd +xlen +xinfo +evalsha +script|load +time`, on
/// the keys of the stream and of the dead letters. `+info` and `+pttl` let `connect` find settings that lose events, `+xgroup`
/// lets it create the group, and lets consumers that end leave it.
pub struct RedisStream {
    url: String,
    create: bool,
    place: Arc<Place>,
    links: std::sync::Mutex<Option<Links>>,
    reading: Mutex<Reading>,
    /// Whether it was said that a restart of the server forgets.
    warned: AtomicBool,
    /// How many entries were lost before they were read, when it was last said.
    trimmed: AtomicU64,
}

/// Where the entries are, and who reads them.
#[derive(Clone)]
struct Place {
    stream: String,
    group: String,
    consumer: String,
    dead_letters: String,
    body_field: String,
    lease: Duration,
}

/// What an entry of a [`RedisStream`] is settled with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisReceipt {
    id: String,
    /// Tells this delivery from a later one of the same entry to the same consumer.
    deliveries: u32,
    has_body: bool,
}

impl RedisStream {
    /// The stream and the group, at `redis://[user:password@]host[:port][/database]`; `rediss:` needs the feature
    /// `redis-tls`.
    #[must_use]
    pub fn new(url: impl Into<String>, stream: impl Into<String>, group: impl Into<String>) -> Self {
        let stream = stream.into();
        let random = RandomState::new().build_hasher().finish();
        let place = Place {
            group: group.into(),
            consumer: format!("idem-{}-{random:016x}", std::process::id()),
            dead_letters: format!("{stream}:dead"),
            body_field: "body".to_owned(),
            lease: LEASE,
            stream,
        };
        Self {
            url: url.into(),
            create: false,
            place: Arc::new(place),
            links: std::sync::Mutex::default(),
            reading: Mutex::default(),
            warned: AtomicBool::new(false),
            trimmed: AtomicU64::new(0),
        }
    }

    /// Makes the stream and the group when it connects, if they are not there. The group begins with the oldest entry.
    #[must_use]
    pub fn create_group(mut self) -> Self {
        self.create = true;
        self
    }

    /// The name in the group. Default: another one for each `RedisStream`, which leaves the group at the end.
    #[must_use]
    pub fn consumer_name(mut self, name: impl Into<String>) -> Self {
        self.place_mut().consumer = name.into();
        self
    }

    /// How long an entry is pending for a consumer that says nothing of it, before another one takes it. Default: 30 seconds;
    /// at least a second. A consumer extends it while a handler runs, so it is the time until a dead consumer's entries are
    /// taken by another.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.place_mut().lease = lease.max(Duration::from_secs(1));
        self
    }

    /// Where dead letters are stored. Default: the stream's name with `:dead` behind it. In a cluster both must be in one slot:
    /// `{payments}` and `{payments}:dead`.
    #[must_use]
    pub fn dead_letter_stream(mut self, name: impl Into<String>) -> Self {
        self.place_mut().dead_letters = name.into();
        self
    }

    /// The field that holds the body. Default: `body`.
    #[must_use]
    pub fn body_field(mut self, name: impl Into<String>) -> Self {
        self.place_mut().body_field = name.into();
        self
    }

    fn place_mut(&mut self) -> &mut Place {
        Arc::make_mut(&mut self.place)
    }

    fn links(&self) -> Result<Links, AdapterError> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner).clone();
        links.ok_or_else(|| AdapterError::unreachable("there is no connection to Redis"))
    }

    fn set_links(&self, links: Option<Links>) {
        *self.links.lock().unwrap_or_else(PoisonError::into_inner) = links;
    }

    /// Calls a script that settles, with what all of these begin with.
    async fn call(
        &self,
        script: &Script,
        receipt: &RedisReceipt,
        with: impl FnOnce(&mut ScriptInvocation<'_>),
    ) -> Result<i64, AdapterError> {
        let Place { stream, group, consumer, .. } = &*self.place;
        let mut call = script.key(stream);
        call.arg(group).arg(consumer).arg(&receipt.id).arg(receipt.deliveries);
        with(&mut call);
        call.invoke_async(&mut self.links()?.commands).await.map_err(|error| failed(&error))
    }

    /// Gives an entry to nobody, so that anybody takes it after this time, or after a lease if that is shorter.
    async fn give_back(
        &self,
        delivery: &Delivery<RedisReceipt>,
        counted: bool,
        after: Duration,
    ) -> Result<i64, AdapterError> {
        let RedisReceipt { deliveries, .. } = delivery.receipt;
        let noted = if counted { deliveries } else { deliveries.saturating_sub(1) };
        // Whoever takes it, with whatever lease: idle since the beginning of time.
        let (unit, millis) = match after {
            Duration::ZERO => ("TIME", 1),
            _ => ("IDLE", as_millis(self.place.lease.saturating_sub(after))),
        };
        let given = self.call(&scripts::GIVE, &delivery.receipt, |call| {
            call.arg(noted).arg(unit).arg(millis);
        });
        match given.await? {
            GONE => {
                let reason =
                    "the entry was trimmed or deleted from the stream while it was handled, and cannot come again";
                self.bury(delivery, reason).await
            }
            done => Ok(done),
        }
    }

    /// Copies an entry to the dead letters, and acknowledges it. What is not in the stream any more is stored as it was read.
    async fn bury(&self, delivery: &Delivery<RedisReceipt>, reason: &str) -> Result<i64, AdapterError> {
        let (Place { dead_letters, body_field, .. }, receipt) = (&*self.place, &delivery.receipt);
        let missing = if receipt.has_body { String::new() } else { format!("the entry has no field `{body_field}`: ") };
        let reason = format!("{missing}{reason}");
        let done = self.call(&scripts::BURY, receipt, |call| {
            call.key(dead_letters).arg(&reason);
        });
        let done = done.await?;
        if done != GONE {
            return Ok(done);
        }
        let Incoming { body, headers } = &delivery.message;
        let done = self.call(&scripts::BURY, receipt, |call| {
            call.key(dead_letters).arg(&reason).arg(body_field).arg(body.as_slice());
            for (name, value) in headers {
                call.arg(name).arg(value);
            }
        });
        done.await
    }
}

impl Place {
    fn source(&self) -> String {
        format!("{}/{}", self.stream, self.group)
    }

    fn check(&self) -> Result<(), AdapterError> {
        let wrong = if self.dead_letters == self.stream {
            "the stream cannot be the place of its own dead letters, which would come again for ever"
        } else if self.consumer == RELEASED {
            "`idem:released` is the name of the consumer of what was given back, which anybody takes"
        } else if self.body_field.starts_with("idem-") {
            "fields that begin with `idem-` are those of dead letters; name another one for the body"
        } else {
            return Ok(());
        };
        Err(AdapterError::refused(wrong))
    }
}

impl Adapter for RedisStream {
    type Receipt = RedisReceipt;

    const BROKER: &'static str = "redis";

    const RETRIES: Retries = Retries::InProcess;

    fn source(&self) -> String {
        self.place.source()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        self.place.check()?;
        let connecting = async {
            let links = Links::open(&self.url).await?;
            let is_durable = links.check(&self.place, self.create).await?;
            Ok((links, is_durable))
        };
        let late = |_| AdapterError::unreachable("Redis did not answer in time");
        let (links, is_durable) = timeout(CONNECT, connecting).await.map_err(late)??;
        if !is_durable && !self.warned.swap(true, Ordering::Relaxed) {
            telemetry::not_durable(&self.source());
        }
        self.reading.lock().await.interrupt();
        self.set_links(Some(links));
        // Says what was lost while nobody was connected.
        self.lag().await?;
        Ok(Connected::new().lease(self.place.lease))
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<RedisReceipt>>, AdapterError> {
        let links = self.links()?;
        self.reading.lock().await.next(&links, &self.place, max).await.map_err(|error| failed(&error))
    }

    async fn settle(&self, delivery: &Delivery<RedisReceipt>, how: &Settlement) -> Result<(), AdapterError> {
        let done = match how {
            Settlement::Ack => self.call(&scripts::ACK, &delivery.receipt, |_| ()).await?,
            Settlement::Retry { after } => self.give_back(delivery, true, *after).await?,
            Settlement::Release { after } => self.give_back(delivery, false, *after).await?,
            Settlement::DeadLetter { reason } => self.bury(delivery, reason).await?,
        };
        still_held(done)
    }

    async fn extend(&self, receipt: &RedisReceipt) -> Result<(), AdapterError> {
        match self.call(&scripts::EXTEND, receipt, |_| ()).await? {
            GONE => Err(AdapterError::refused(
                "the entry was trimmed or deleted from the stream while it is handled: if this process dies first, its event is \
                 lost; trim only what is acknowledged",
            )),
            done => still_held(done),
        }
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        let mut commands = self.links()?.commands;
        let asked: Result<(u64, u64, String, u64, u64), RedisError> =
            scripts::LAG.key(&self.place.stream).arg(&self.place.group).invoke_async(&mut commands).await;
        let (pending, unread, oldest, now, trimmed) = asked.map_err(|error| failed(&error))?;
        if trimmed > self.trimmed.swap(trimmed, Ordering::Relaxed) {
            telemetry::trimmed_unread(&self.source(), trimmed);
        }
        Ok(Some(Lag::new(pending.saturating_add(unread)).oldest(age(&oldest, now))))
    }

    async fn close(&self) {
        let ending = async {
            let mut links = self.links()?;
            let left = self.reading.lock().await.finish(&links, &self.place).await;
            for delivery in left {
                self.give_back(&delivery, false, Duration::ZERO).await?;
            }
            let Place { stream, group, consumer, .. } = &*self.place;
            let left: Result<i64, RedisError> =
                scripts::LEAVE.key(stream).arg(group).arg(consumer).invoke_async(&mut links.commands).await;
            left.map_err(|error| failed(&error))
        };
        // What could not be given back comes again when its lease ends, and a consumer that stays holds nothing up.
        drop(timeout(CLOSE, ending).await);
        self.reading.lock().await.interrupt();
        self.set_links(None);
    }
}

impl fmt::Debug for RedisStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { stream, group, consumer, dead_letters, body_field, lease } = &*self.place;
        // The URL can hold a password.
        f.debug_struct("RedisStream")
            .field("stream", stream)
            .field("group", group)
            .field("consumer", consumer)
            .field("dead_letters", dead_letters)
            .field("body_field", body_field)
            .field("lease", lease)
            .finish_non_exhaustive()
    }
}

fn still_held(done: i64) -> Result<(), AdapterError> {
    if done == DONE {
        return Ok(());
    }
    Err(AdapterError::stale("the entry is not pending for this delivery any more: its lease ended, or it was settled"))
}

/// The age of an entry, by its id and the server's clock; `None` for an id that the sender made up.
fn age(id: &str, now_in_seconds: u64) -> Option<Duration> {
    const YEAR_2001: u64 = 1_000_000_000_000;
    let sent: u64 = id.split('-').next()?.parse().ok()?;
    let now = now_in_seconds.saturating_mul(1_000);
    let is_made_up = sent < YEAR_2001 || sent > now.saturating_add(86_400_000);
    (!is_made_up).then(|| Duration::from_millis(now.saturating_sub(sent)))
}

fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
