//! The consumer: one loop between a broker and the handlers, for all brokers.
//!
//! `run.rs` is the loop, `hand_out.rs` says what is handled together and what waits, `one.rs` what happens to one
//! delivery, `batch.rs` what happens to many at once, and `consuming.rs` is what the application holds.

mod batch;
mod consuming;
mod hand_out;
mod one;
mod retry;
mod route;
mod run;

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::{Adapter, AdapterFault, Connected};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::handler::{Handler, HandlerResult};
use crate::store::Store;
use crate::telemetry;

use one::Shared;
use run::Limits;

pub use consuming::Consuming;
pub use retry::RetryPolicy;
#[cfg(feature = "axum")]
pub(crate) use route::Handled;
pub(crate) use route::Routed;
pub use route::{Route, route};

/// How many deliveries are handled at once.
const CONCURRENCY: usize = 8;

/// How long what is in flight may take to end after the consumer was told to stop.
const GRACE: Duration = Duration::from_secs(20);

/// Connects a broker to handlers.
///
/// A delivery is settled after the commit of its effect and never before, by the table of outcomes: applied and duplicate are
/// acknowledged, what may succeed later is retried with a growing pause, what never can is dead-lettered with the reason.
/// Only the delivery of an at-most-once handler is acknowledged first, when every other handler of the message is done.
///
/// ```standalone_crate
/// use idem_runtime::{Consumer, DatabaseQueue, Engine, Incoming, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// #[derive(serde::Deserialize)]
/// struct Paid {
///     order_id: String,
/// }
///
/// #[idempotent(key(msg.order_id), retention = "7d")]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     sqlx::query("INSERT INTO credit VALUES (?)").bind(&msg.order_id).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # sqlx::query("CREATE TABLE credit (order_id TEXT)").execute(&pool).await?;
/// # idem_runtime::migrate(&pool).await?;
/// let engine = Engine::start(pool.clone()).await?;
/// let queue = DatabaseQueue::new(&pool, "payments");
/// queue.enqueue(&Incoming::new(r#"{"order_id": "ord_1"}"#)).await?;
/// queue.enqueue(&Incoming::new(r#"{"order_id": "ord_1"}"#)).await?;
///
/// let consuming = Consumer::new(&engine, queue).handler::<credit>().start().await?;
/// consuming.until_settled().await;
/// consuming.stop().await;
/// let credits: i64 = sqlx::query_scalar("SELECT count(*) FROM credit").fetch_one(&pool).await?;
/// assert_eq!(credits, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "nothing is consumed before `start` is awaited"]
pub struct Consumer<S: Store, A: Adapter> {
    engine: Engine<S>,
    adapter: A,
    routes: Vec<Box<dyn Routed<S>>>,
    concurrency: usize,
    batch: usize,
    retry: RetryPolicy,
    grace: Duration,
    strict: bool,
}

impl<S: Store, A: Adapter> Consumer<S, A> {
    /// A consumer with the defaults, and without handlers yet.
    pub fn new(engine: &Engine<S>, adapter: A) -> Self {
        let (concurrency, retry, grace) = (CONCURRENCY, RetryPolicy::default(), GRACE);
        Self { engine: engine.clone(), adapter, routes: Vec::new(), concurrency, batch: 1, retry, grace, strict: false }
    }

    /// Every message goes to this handler, decoded as JSON; to several, if this is called several times. Each has its own key
    /// and its own transaction, and the delivery is acknowledged when all are done.
    pub fn handler<H>(self) -> Self
    where
        H: Handler<S, State = ()> + 'static,
        H::Message: DeserializeOwned + Send + Sync + 'static,
        <H::Returned as HandlerResult>::Err: fmt::Display,
    {
        self.route(route::<S, H>())
    }

    /// The messages that the route takes go to its handler.
    pub fn route<H>(mut self, route: Route<S, H>) -> Self
    where
        H: Handler<S> + 'static,
        H::Message: Sized + Send + Sync + 'static,
        H::State: Send + Sync + 'static,
        <H::Returned as HandlerResult>::Err: fmt::Display,
    {
        self.routes.push(Box::new(route));
        self
    }

    /// How many deliveries are handled at once. Default: 8; at least 1. No more than these are taken from the broker, so that
    /// none grows old while it waits here. A pool with fewer connections makes them wait for each other.
    pub fn concurrency(mut self, deliveries: usize) -> Self {
        self.concurrency = deliveries.max(1);
        self
    }

    /// How many deliveries share a transaction, at most. Default: 1, each its own.
    ///
    /// What the broker has at hand becomes a batch; nobody waits for it to be full. The outcome is that of each delivery
    /// alone: if one fails, the batch is rolled back and each is handled by itself. A delivery that failed before is in no
    /// batch, nor is one for a handler without a key or with effects outside the database. See
    /// [`Engine::handle_batch`].
    ///
    /// Up to [`concurrency`](Self::concurrency) batches are handled at once, and as many deliveries are taken from the
    /// broker.
    pub fn batch(mut self, deliveries: usize) -> Self {
        self.batch = deliveries.max(1);
        self
    }

    /// How often and when a failed delivery is tried again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long what is in flight may take to end after [`Consuming::stop`]. Default: 20 seconds. What has not ended then is
    /// rolled back and given back to the broker.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Refuses to start where the broker's own redelivery outlives what a handler declares, which is a warning otherwise.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Connects, checks the settings of both sides, and begins to consume, in the background.
    ///
    /// Once it has started it goes on until it is stopped: a broker that goes away is tried for ever, with growing pauses.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registry`] without a handler; [`BrokerRefused`](ErrorKind::BrokerRefused) for settings, a queue or a
    /// permission that somebody must change, and under [`strict`](Self::strict) for a redelivery that is too long;
    /// [`BrokerUnavailable`](ErrorKind::BrokerUnavailable) where the broker does not answer.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing was received yet.
    pub async fn start(self) -> Result<Consuming, Error> {
        if self.routes.is_empty() {
            return Err(
                Error::new(ErrorKind::Registry).detail("the consumer has no handler: call `handler` or `route`")
            );
        }
        let connected = self.adapter.connect().await.map_err(|error| {
            let kind = match error.fault {
                AdapterFault::Refused => ErrorKind::BrokerRefused,
                AdapterFault::Unreachable | AdapterFault::Stale => ErrorKind::BrokerUnavailable,
            };
            let place = format!("{} `{}`: {}", A::BROKER, self.adapter.source(), error.with_causes());
            Error::new(kind).detail(place)
        })?;
        self.check_horizon(&connected)?;
        let Self { engine, adapter, routes, concurrency, batch, retry, grace, .. } = self;
        let limits = Limits { concurrency, batch, grace };
        Ok(run::spawn(Shared::new(engine, adapter, routes, retry, connected.lease), limits))
    }

    /// Compares the broker's own redelivery with what the handlers declare. [B39]
    fn check_horizon(&self, connected: &Connected) -> Result<(), Error> {
        let Some(horizon) = &connected.horizon else { return Ok(()) };
        for meta in self.routes.iter().map(|route| route.meta()) {
            let Some(retention) = meta.retention else { continue };
            let declared: Duration = meta.redelivery.iter().map(|window| window.length.as_duration()).sum();
            let is_too_short = horizon.length >= retention.as_duration();
            let is_undeclared = !meta.redelivery.is_empty() && horizon.length > declared;
            if !(is_too_short || is_undeclared) {
                continue;
            }
            if self.strict {
                return Err(Error::new(ErrorKind::BrokerRefused).detail(format!(
                    "handler `{}` keeps its keys for {retention} and declares a redelivery of {} seconds, and {} `{}` can \
                     deliver again after {} seconds, by {}; lengthen `retention` and `redelivery`, or shorten the broker's",
                    meta.name,
                    declared.as_secs(),
                    A::BROKER,
                    self.adapter.source(),
                    horizon.length.as_secs(),
                    horizon.because,
                )));
            }
            telemetry::long_redelivery(meta, A::BROKER, &self.adapter.source(), horizon, declared);
        }
        Ok(())
    }
}

impl<S: Store, A: Adapter> fmt::Debug for Consumer<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers: Vec<_> = self.routes.iter().map(|route| route.meta().name).collect();
        f.debug_struct("Consumer")
            .field("broker", &A::BROKER)
            .field("handlers", &handlers)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
