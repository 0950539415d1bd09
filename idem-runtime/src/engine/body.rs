//! The handler's body as the engine sees it: something to run in a transaction, perhaps again.
//!
//! Generated code calls [`prepare`]; everything that depends on the handler's types ends here, so that the algorithm in
//! `deliver.rs` is compiled once per store and not once per handler.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::Transaction;

use super::Engine;
use super::codec::Codec;
use super::deliver::Ended;
use super::setback::{Stop, refuse_key, refuse_panicked_key};
use crate::error::{Failed, Failure};
use crate::handler::{Handled, HandlerMeta, HandlerResult};
use crate::key::{Key, KeyError};
use crate::outcome::{Outcome, Seen};
use crate::store::{Fault, KeyRow, Store};
use crate::tx::TxView;

/// What a run of the body came to.
pub(crate) enum Verdict {
    /// The handler returned `Ok`; under `replay` with what is to be stored.
    Done { result: Option<Vec<u8>> },
    /// The handler returned `Err`; of the kind that running again may cure, or not.
    Failed { contention: bool },
    /// The handler panicked with this message.
    Panicked(String),
    /// The handler returned `Ok`, but its result cannot be written.
    Unwritable(serde_json::Error),
}

/// The body without its types.
pub(crate) trait Body<S: Store>: Send {
    /// Gives the transaction back, unless a panic has taken it (dropping it has queued the rollback).
    fn run<'t>(&'t mut self, tx: Transaction<'t, S>) -> BoxFuture<'t, (Option<Transaction<'t, S>>, Verdict)>;

    /// Whether it owns its connection for a time, and runs by [`run_lent`](Self::run_lent) alone.
    #[cfg(feature = "axum")]
    fn borrows(&self) -> bool {
        true
    }

    /// Gives the connection back, unless the body has kept it.
    #[cfg(feature = "axum")]
    fn run_lent(&mut self, lent: super::lend::Lent<S>) -> BoxFuture<'_, (Option<super::lend::Lent<S>>, Verdict)> {
        drop(lent);
        unreachable!("a body that borrows is given a transaction")
    }

    /// The event was applied before. Fails when the result that was stored then is not this handler's.
    fn seen(&mut self, row: KeyRow) -> Result<(), serde_json::Error>;

    /// Whether the message is still there: a message that was moved into the handler and cannot be cloned is not.
    fn can_run_again(&self) -> bool;
}

/// What the handler returned, if it ran, and what is known of an earlier delivery, if there was one.
type Ends<R> =
    (Option<Result<<R as HandlerResult>::Ok, <R as HandlerResult>::Err>>, Option<Seen<<R as HandlerResult>::Ok>>);

/// The body with what its types come to at the end.
pub(super) trait TypedBody<S: Store, R: HandlerResult>: Body<S> {
    fn take(&mut self) -> Ends<R>;

    /// The event was applied by the handler's other body, the one for many.
    fn applied(&mut self, value: R::Ok);
}

/// One run's transaction, as the handler borrows it.
///
/// Every lifetime here outlives the next: `'up`, that of what the body captures, `'c`, the connection's, and `'t`, the
/// run's. The type must say so, or a closure that returns a boxed future could capture nothing that is borrowed.
#[derive(Debug)]
pub struct Attempt<'up, 'c, 't, S: Store> {
    tx: &'t mut Transaction<'c, S>,
    bound: PhantomData<&'c &'up ()>,
}

impl<'c, 't, S: Store> Attempt<'_, 'c, 't, S> {
    pub(super) fn new(tx: &'t mut Transaction<'c, S>) -> Self {
        Self { tx, bound: PhantomData }
    }
}

impl<'c, 't, S: Store> Attempt<'_, 'c, 't, S> {
    /// The transaction, as the type that the handler takes it as.
    pub fn tx<V: TxView<'c, Store = S>>(self) -> &'t mut V {
        V::view(self.tx)
    }
}

/// What generated code knows of a handler beside its body.
#[derive(Debug)]
pub struct Plan<R: HandlerResult> {
    meta: &'static HandlerMeta,
    /// `None` for a handler without keys.
    key: Option<std::thread::Result<Result<Key, KeyError>>>,
    repeatable: bool,
    cause: fn(&R::Err) -> Option<&sqlx::Error>,
}

impl<R: HandlerResult> Plan<R> {
    /// The facts, how to make the key of this message's event, and how to find the database's error behind the handler's,
    /// through [`Cause`](super::Cause).
    pub fn keyed(
        meta: &'static HandlerMeta,
        key: impl FnOnce() -> Result<Key, KeyError>,
        cause: fn(&R::Err) -> Option<&sqlx::Error>,
    ) -> Self {
        // It only reads the message, so nothing broken can be seen.
        let key = Some(catch_unwind(AssertUnwindSafe(key)));
        Self { meta, key, repeatable: true, cause }
    }

    /// The same for a handler without keys.
    pub fn unkeyed(meta: &'static HandlerMeta, cause: fn(&R::Err) -> Option<&sqlx::Error>) -> Self {
        Self { meta, key: None, repeatable: true, cause }
    }

    /// Whether a value that the body moves is there for more than one run. Said once for each.
    #[must_use]
    pub fn repeatable_if(mut self, is_kept: bool) -> Self {
        self.repeatable &= is_kept;
        self
    }
}

/// The body with its types, and what it came to.
struct Typed<'up, R: HandlerResult, F, C> {
    body: F,
    codec: C,
    repeatable: bool,
    cause: fn(&R::Err) -> Option<&sqlx::Error>,
    ran: bool,
    result: Option<Result<R::Ok, R::Err>>,
    seen: Option<Seen<R::Ok>>,
    bound: PhantomData<&'up ()>,
}

impl<R: HandlerResult, F, C> Typed<'_, R, F, C> {
    fn new(body: F, codec: C, repeatable: bool, cause: fn(&R::Err) -> Option<&sqlx::Error>) -> Self {
        Self { body, codec, repeatable, cause, ran: false, result: None, seen: None, bound: PhantomData }
    }
}

impl<'up, S, R, F, C> Body<S> for Typed<'up, R, F, C>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send>,
    F: for<'c, 't> FnMut(Attempt<'up, 'c, 't, S>) -> BoxFuture<'t, R> + Send,
    C: Codec<R::Ok> + Send,
{
    fn run<'t>(&'t mut self, mut tx: Transaction<'t, S>) -> BoxFuture<'t, (Option<Transaction<'t, S>>, Verdict)> {
        self.ran = true;
        let Self { body, codec, cause, result, .. } = self;
        // Everything of the user's that can panic: the message's `Clone`, the body, the result's `Serialize`.
        let users = async move {
            let returned = body(Attempt::new(&mut tx)).await.into_result();
            let written = returned.as_ref().ok().and_then(|value| codec.write(value)).transpose();
            (tx, returned, written)
        };
        Box::pin(async move {
            // The transaction is rolled back and everything the body owned is gone: nothing broken can be seen.
            let (tx, returned, written) = match AssertUnwindSafe(users).catch_unwind().await {
                Ok(ended) => ended,
                Err(panic) => return (None, Verdict::Panicked(panic_text(&*panic))),
            };
            let verdict = match (&returned, written) {
                (Ok(_), Ok(result)) => Verdict::Done { result },
                (Ok(_), Err(error)) => Verdict::Unwritable(error),
                (Err(error), _) => Verdict::Failed {
                    contention: cause(error).is_some_and(|error| S::fault(error) == Fault::Contention),
                },
            };
            *result = Some(returned);
            (Some(tx), verdict)
        })
    }

    fn seen(&mut self, row: KeyRow) -> Result<(), serde_json::Error> {
        let result = match row.result {
            Some(stored) => self.codec.read(&stored)?,
            None => None,
        };
        self.seen = Some(Seen {
            claimed_at: UNIX_EPOCH + micros(row.claimed_micros),
            age: micros(row.now_micros.saturating_sub(row.claimed_micros)),
            result,
        });
        Ok(())
    }

    fn can_run_again(&self) -> bool {
        self.repeatable || !self.ran
    }
}

impl<S, R, F, C> TypedBody<S, R> for Typed<'_, R, F, C>
where
    Self: Body<S>,
    S: Store,
    R: HandlerResult,
{
    fn take(&mut self) -> Ends<R> {
        (self.result.take(), self.seen.take())
    }

    fn applied(&mut self, value: R::Ok) {
        self.result = Some(Ok(value));
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("the panic has no message").to_owned()
}

/// A delivery that is ready to run: with a key once for its event, without one each time.
pub struct Prepared<'up, S: Store, R: HandlerResult> {
    pub(super) meta: &'static HandlerMeta,
    /// `None` for a handler without keys; else why there is none, where that is so.
    pub(super) key: Option<std::thread::Result<Result<Key, KeyError>>>,
    pub(super) body: Box<dyn TypedBody<S, R> + 'up>,
}

/// Puts a handler's body behind its plan.
///
/// Boxed here, once for all handlers: the compiler would else prove anew for each of them that the engine's futures are
/// `Send`.
pub fn prepare<'up, S, R, F, C>(plan: Plan<R>, codec: C, body: F) -> Prepared<'up, S, R>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send> + 'up,
    F: for<'c, 't> FnMut(Attempt<'up, 'c, 't, S>) -> BoxFuture<'t, R> + Send + 'up,
    C: Codec<R::Ok> + Send + 'up,
{
    let Plan { meta, key, repeatable, cause } = plan;
    Prepared { meta, key, body: Box::new(Typed::<R, F, C>::new(body, codec, repeatable, cause)) }
}

/// Runs what a handler has prepared. What its `call` does.
///
/// # Errors
///
/// As for [`Prepared::run`].
///
/// # Panics
///
/// If nothing is prepared: generated code prepares what it runs.
///
/// # Cancel safety
///
/// As for [`Prepared::run`].
pub fn run<'up, S, R>(engine: &'up Engine<S>, prepared: Option<Prepared<'up, S, R>>) -> BoxFuture<'up, Handled<R>>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send> + 'up,
{
    match prepared {
        Some(prepared) => prepared.run(engine),
        None => unreachable!("generated code prepares what it runs"),
    }
}

impl<'up, S: Store, R: HandlerResult<Ok: Send, Err: Send> + 'up> Prepared<'up, S, R> {
    /// Runs the body in a transaction.
    ///
    /// # Errors
    ///
    /// As [`Failure`] says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls back. Dropped while the commit is under way, key and effect are stored or neither is.
    pub fn run(self, engine: &'up Engine<S>) -> BoxFuture<'up, Handled<R>> {
        let Self { meta, key, mut body } = self;
        Box::pin(async move {
            let key = match key {
                None => None,
                Some(Ok(Ok(key))) => Some(key),
                Some(Ok(Err(error))) => return Err(Failure::Engine(refuse_key(meta, error))),
                Some(Err(panic)) => return Err(Failure::Engine(refuse_panicked_key(meta, &panic_text(&*panic)))),
            };
            let ended = engine.deliver(meta, key.as_ref(), &mut *body).await;
            let (result, seen) = body.take();
            handled::<R>(ended, result, seen, meta, key)
        })
    }
}

impl<S: Store, R: HandlerResult> fmt::Debug for Prepared<'_, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("handler", &self.meta.name).finish_non_exhaustive()
    }
}

/// Puts the types on again.
pub(super) fn handled<R: HandlerResult>(
    ended: Result<Ended, Stop>,
    result: Option<Result<R::Ok, R::Err>>,
    seen: Option<Seen<R::Ok>>,
    meta: &'static HandlerMeta,
    key: Option<Key>,
) -> Handled<R> {
    match (ended, result, seen) {
        (Ok(Ended::Applied), Some(Ok(value)), _) => Ok(Outcome::Applied(value)),
        (Ok(Ended::Duplicate), _, Some(seen)) => Ok(Outcome::Duplicate(seen)),
        (Err(Stop::Handler), Some(Err(error)), _) => Err(Failure::Handler(Failed::new(error, meta, key))),
        (Err(Stop::Engine(error)), ..) => Err(Failure::Engine(error)),
        (Ok(_) | Err(Stop::Handler), ..) => unreachable!("the engine ends as the body told it"),
    }
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
