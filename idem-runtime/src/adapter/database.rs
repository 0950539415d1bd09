//! The database itself as the queue: nothing else to install, and the inbox where there is a broker in front.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::Pool;

use super::{Adapter, AdapterError, Connected, Delivery, Incoming, Lag, Retries, Settlement};
use crate::error::{Error, ErrorKind};
use crate::store::{Borrowed, Fault, Held, QueuedRow, Store, schema};

/// How long a message that was taken is hidden from others, unless its taker says that it still works on it.
const LEASE: Duration = Duration::from_secs(30);

/// How often an empty queue is looked at.
const POLL: Duration = Duration::from_millis(250);

/// As many messages are counted.
const COUNTED: i64 = 100_000;

/// How often a statement is tried that meets a lock or a deadlock.
const TRIES: u32 = 5;

/// A queue in the table `idem_queue`. Cheap to clone.
///
/// What is enqueued in the transaction of an effect is there exactly if that is committed. A message is handed out again
/// when its lease ends, and stays in the table, dead-lettered, until a human has it delivered again or deletes it.
///
/// Messages come oldest first, and in no order that could be relied on: a failed one is overtaken.
#[derive(Debug)]
pub struct DatabaseQueue<S: Store> {
    pool: Pool<S>,
    queue: String,
    lease: Duration,
    poll: Duration,
    keep: bool,
}

impl<S: Store> Clone for DatabaseQueue<S> {
    fn clone(&self) -> Self {
        let Self { pool, queue, lease, poll, keep } = self;
        Self { pool: pool.clone(), queue: queue.clone(), lease: *lease, poll: *poll, keep: *keep }
    }
}

/// What a message of a [`DatabaseQueue`] is settled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseReceipt(Held);

/// A message that waits for a human.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Names it, for [`DatabaseQueue::deliver_again`].
    pub id: i64,
    /// The message.
    pub message: Incoming,
    /// How often it was delivered.
    pub attempts: u32,
    /// Why it was dead-lettered. Can hold what a handler's error says.
    pub reason: String,
    /// How long ago that was, by the database's clock.
    pub age: Duration,
}

impl<S: Store> DatabaseQueue<S> {
    /// The queue of this name: 1 to 128 of `A-Za-z0-9._:/-`. A queue needs no creation.
    #[must_use]
    pub fn new(pool: &Pool<S>, queue: impl Into<String>) -> Self {
        Self { pool: pool.clone(), queue: queue.into(), lease: LEASE, poll: POLL, keep: true }
    }

    /// How long a message that was taken is hidden from other consumers. Default: 30 seconds; at least a second. A consumer
    /// extends it while a handler runs, so it is the time until a dead consumer's messages are taken by another.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_secs(1));
        self
    }

    /// How often an empty queue is looked at. Default: 250 milliseconds; at least 10.
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll.max(Duration::from_millis(10));
        self
    }

    /// Whether statements are prepared once per connection, as for
    /// [`EngineBuilder::statement_cache`](crate::EngineBuilder::statement_cache). Default: `true`.
    #[must_use]
    pub fn statement_cache(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// Adds a message, in a transaction of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] or [`Database`](ErrorKind::Database) when it could not be stored;
    /// [`BrokerRefused`](ErrorKind::BrokerRefused) for a queue's name that is none.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the message is stored or it is not. Enqueue it again: its event is applied once.
    pub async fn enqueue(&self, message: &Incoming) -> Result<(), Error> {
        let mut conn = Borrowed::<S>::from(&self.pool).await?;
        self.enqueue_in(&mut conn, message).await?;
        conn.give_back();
        Ok(())
    }

    /// Adds a message in the caller's transaction: `queue.enqueue_in(&mut tx, &message)`. It is there if that is committed.
    ///
    /// # Errors
    ///
    /// As for [`enqueue`](Self::enqueue). On PostgreSQL the transaction is doomed then.
    ///
    /// # Cancel safety
    ///
    /// As the transaction's.
    pub async fn enqueue_in(&self, conn: &mut S::Connection, message: &Incoming) -> Result<(), Error> {
        if let Err(error) = self.check_name() {
            return Err(Error::new(ErrorKind::BrokerRefused).detail(error.to_string()));
        }
        let headers = match message.headers.is_empty() {
            true => None,
            // A map of text to text has a form in JSON.
            false => serde_json::to_string(&message.headers).ok(),
        };
        let stored = S::enqueue(conn, &self.queue, headers.as_deref(), &message.body, self.keep).await;
        stored.map_err(schema::connection_error::<S>)
    }

    /// The messages that wait for a human, oldest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] or [`Database`](ErrorKind::Database) when they could not be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn dead_letters(&self, limit: u32) -> Result<Vec<DeadLetter>, Error> {
        let mut conn = Borrowed::<S>::from(&self.pool).await?;
        let rows = S::buried(&mut conn, &self.queue, limit.into()).await.map_err(schema::connection_error::<S>)?;
        conn.give_back();
        let dead_letter = |row: QueuedRow| DeadLetter {
            id: row.id,
            attempts: attempts(&row),
            reason: row.dead_reason.clone().unwrap_or_default(),
            age: millis(row.dead_millis_ago.unwrap_or(0)),
            message: message(row),
        };
        Ok(rows.into_iter().map(dead_letter).collect())
    }

    /// Has a message delivered again that waits for a human, as if it were new. Says whether it was there. If its effect was
    /// applied, it is a duplicate.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] or [`Database`](ErrorKind::Database) when it could not be stored.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, it is delivered again or it is not.
    pub async fn deliver_again(&self, id: i64) -> Result<bool, Error> {
        let mut conn = Borrowed::<S>::from(&self.pool).await?;
        let was_there = S::exhume(&mut conn, &self.queue, id).await.map_err(schema::connection_error::<S>)?;
        conn.give_back();
        Ok(was_there)
    }

    fn check_name(&self) -> Result<(), AdapterError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
        if (1..=128).contains(&self.queue.len()) && self.queue.bytes().all(is_plain) {
            return Ok(());
        }
        Err(AdapterError::refused("a queue's name is 1 to 128 of `A-Za-z0-9._:/-`"))
    }

    async fn connection(&self) -> Result<Borrowed<S>, AdapterError> {
        Borrowed::from(&self.pool).await.map_err(|error| {
            AdapterError::unreachable("no connection to the database that holds the queue").because(error)
        })
    }
}

/// Runs a statement on a connection of its own, again where it met a lock. A function could not say that what its closure
/// borrows outlives the connection.
macro_rules! run {
    ($self:ident, |$conn:ident| $statement:expr) => {{
        let mut tries = 1;
        loop {
            let mut connection = $self.connection().await?;
            let $conn: &mut S::Connection = &mut connection;
            match $statement.await {
                Ok(done) => {
                    connection.give_back();
                    break done;
                }
                Err(error) if tries < TRIES && matches!(S::fault(&error), Fault::Contention | Fault::LockTimeout) => {
                    connection.give_back();
                    tokio::time::sleep(crate::engine::pause(tries)).await;
                    tries += 1;
                }
                Err(error) => return Err(refused::<S>(error)),
            }
        }
    }};
}

fn refused<S: Store>(error: sqlx::Error) -> AdapterError {
    let refused = match S::fault(&error) {
        Fault::Schema => AdapterError::refused("the table `idem_queue` is missing: run `idem_runtime::migrate`"),
        Fault::ReadOnly => AdapterError::refused("the database that holds the queue is read-only"),
        _ => AdapterError::unreachable("the database that holds the queue did not do as it was asked"),
    };
    refused.because(error)
}

impl<S: Store> Adapter for DatabaseQueue<S> {
    type Receipt = DatabaseReceipt;

    const BROKER: &'static str = "database";

    const RETRIES: Retries = Retries::ByBroker;

    fn source(&self) -> String {
        self.queue.clone()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        self.check_name()?;
        run!(self, |conn| S::unsettled(conn, &self.queue, 1));
        Ok(Connected::new().lease(self.lease))
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<DatabaseReceipt>>, AdapterError> {
        let holder = RandomState::new().build_hasher().finish().cast_signed();
        let (lease, limit) = (as_millis(self.lease), i64::try_from(max).unwrap_or(COUNTED));
        let rows = run!(self, |conn| S::take(conn, &self.queue, holder, lease, limit, self.keep));
        if rows.is_empty() {
            tokio::time::sleep(self.poll).await;
        }
        let delivery = |row: QueuedRow| {
            let (attempt, receipt) = (attempts(&row), DatabaseReceipt(Held { id: row.id, holder }));
            Delivery::new(message(row), attempt, receipt)
        };
        Ok(rows.into_iter().map(delivery).collect())
    }

    async fn settle(&self, delivery: &Delivery<DatabaseReceipt>, how: &Settlement) -> Result<(), AdapterError> {
        let (held, keep) = (delivery.receipt.0, self.keep);
        let was_held = match how {
            Settlement::Ack => run!(self, |conn| S::remove(conn, held, keep)),
            Settlement::Retry { after } => {
                run!(self, |conn| S::put_back(conn, held, as_millis(*after), true, keep))
            }
            Settlement::Release { after } => {
                run!(self, |conn| S::put_back(conn, held, as_millis(*after), false, keep))
            }
            Settlement::DeadLetter { reason } => {
                run!(self, |conn| S::bury(conn, held, reason, keep))
            }
        };
        still_held(was_held)
    }

    async fn ack_all(&self, deliveries: &[Delivery<DatabaseReceipt>]) -> Vec<Result<(), AdapterError>> {
        let held: Vec<_> = deliveries.iter().map(|delivery| delivery.receipt.0).collect();
        match self.remove_all(&held).await {
            Ok(left) => held.iter().map(|held| still_held(!left.contains(&held.id))).collect(),
            Err(_) => join_all(deliveries.iter().map(|delivery| self.settle(delivery, &Settlement::Ack))).await,
        }
    }

    async fn extend(&self, receipt: &DatabaseReceipt) -> Result<(), AdapterError> {
        let lease = as_millis(self.lease);
        still_held(run!(self, |conn| S::hide_for(conn, receipt.0, lease, self.keep)))
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        let (messages, oldest) = run!(self, |conn| S::unsettled(conn, &self.queue, COUNTED));
        Ok(Some(Lag::new(messages.unsigned_abs()).oldest(oldest.map(millis))))
    }
}

impl<S: Store> DatabaseQueue<S> {
    async fn remove_all(&self, held: &[Held]) -> Result<Vec<i64>, AdapterError> {
        Ok(run!(self, |conn| S::remove_all(conn, held)))
    }
}

fn still_held(was_held: bool) -> Result<(), AdapterError> {
    if was_held {
        return Ok(());
    }
    Err(AdapterError::stale("the lease ended, and the message was handed out again"))
}

fn attempts(row: &QueuedRow) -> u32 {
    u32::try_from(row.attempts).unwrap_or(1)
}

fn message(row: QueuedRow) -> Incoming {
    let headers: BTreeMap<String, String> =
        row.headers.and_then(|headers| serde_json::from_str(&headers).ok()).unwrap_or_default();
    Incoming { body: row.body, headers }
}

fn as_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).min(100 * 366 * 86_400 * 1_000)
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
