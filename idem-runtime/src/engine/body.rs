//! The handler's body as the engine sees it: something to run in a transaction, perhaps again.
//!
//! Generated code calls [`run`]; everything that depends on the handler's types ends here, so that the algorithm in
//! `deliver.rs` is compiled once per store and not once per handler.

use std::any::Any;
use std::error::Error as StdError;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Transaction;

use super::Engine;
use super::deliver::{Ended, Stop};
use crate::error::{Failed, Failure};
use crate::handler::{Handled, HandlerMeta, HandlerResult};
use crate::key::{Key, KeyError};
use crate::outcome::{Outcome, Seen};
use crate::store::{Fault, KeyRow, Store};
use crate::tx::TxView;

/// What a run of the body came to.
pub(super) enum Verdict {
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
pub(super) trait Body<S: Store>: Send {
    /// Gives the transaction back, unless a panic has taken it (dropping it has queued the rollback).
    fn run<'t>(&'t mut self, tx: Transaction<'t, S>) -> BoxFuture<'t, (Option<Transaction<'t, S>>, Verdict)>;

    /// The event was applied before. Fails when the result that was stored then is not this handler's.
    fn seen(&mut self, row: KeyRow) -> Result<(), serde_json::Error>;

    /// Whether the message is still there: a message that was moved into the handler and cannot be cloned is not.
    fn can_run_again(&self) -> bool;
}

/// One run's transaction, on its way into the handler and back.
///
/// `'up` outlives every borrow that the body captures. Without it in the type, a closure that returns a boxed future
/// could capture nothing that is borrowed; with a second lifetime beside `'t`, the compiler would no longer see that.
#[derive(Debug)]
pub struct Attempt<'up, 't, S: Store> {
    tx: Transaction<'t, S>,
    bound: PhantomData<&'t &'up ()>,
}

impl<'t, S: Store> Attempt<'_, 't, S> {
    /// The transaction, as the type that the handler takes it as.
    pub fn tx<V: TxView<'t, Store = S>>(&mut self) -> &mut V {
        V::view(&mut self.tx)
    }

    /// The body has returned.
    pub fn end<R>(self, returned: R) -> Run<'t, S, R> {
        Run { tx: self.tx, returned }
    }
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Run<'t, S: Store, R> {
    tx: Transaction<'t, S>,
    returned: R,
}

/// What generated code knows of a handler beside its body.
#[derive(Debug)]
pub struct Plan<E> {
    /// The registered facts.
    pub meta: &'static HandlerMeta,
    /// The key of this message's event.
    pub key: Result<Key, KeyError>,
    /// Whether the body can be called more than once.
    pub repeatable: bool,
    /// Finds the database's error behind the handler's, through [`Cause`].
    pub cause: fn(&E) -> Option<&sqlx::Error>,
}

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

impl<'up, S, R, F, C> Body<S> for Typed<'up, R, F, C>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send>,
    F: for<'t> FnMut(Attempt<'up, 't, S>) -> BoxFuture<'t, Run<'t, S, R>> + Send,
    C: Codec<R::Ok> + Send,
{
    fn run<'t>(&'t mut self, tx: Transaction<'t, S>) -> BoxFuture<'t, (Option<Transaction<'t, S>>, Verdict)> {
        self.ran = true;
        let body = (self.body)(Attempt { tx, bound: PhantomData });
        let Self { codec, cause, result, .. } = self;
        Box::pin(async move {
            // The transaction is rolled back and everything the body owned is gone: nothing broken can be seen.
            let (tx, returned) = match AssertUnwindSafe(body).catch_unwind().await {
                Ok(Run { tx, returned }) => (tx, returned.into_result()),
                Err(panic) => return (None, Verdict::Panicked(panic_text(&*panic))),
            };
            let verdict = match &returned {
                Ok(value) => match codec.write(value).transpose() {
                    Ok(result) => Verdict::Done { result },
                    Err(error) => Verdict::Unwritable(error),
                },
                Err(error) => Verdict::Failed {
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

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("the panic has no message").to_owned()
}

/// Runs a handler's body once for its event. What every annotated function calls.
///
/// # Errors
///
/// As [`Failure`] says.
pub async fn run<'up, S, R, F, C>(engine: &'up Engine<S>, plan: Plan<R::Err>, codec: C, body: F) -> Handled<R>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send>,
    F: for<'t> FnMut(Attempt<'up, 't, S>) -> BoxFuture<'t, Run<'t, S, R>> + Send,
    C: Codec<R::Ok> + Send,
{
    let Plan { meta, key, repeatable, cause } = plan;
    let key = match key {
        Ok(key) => key,
        Err(error) => return Err(Failure::Engine(super::deliver::refuse_key(meta, error))),
    };
    let mut typed =
        Typed::<R, F, C> { body, codec, repeatable, cause, ran: false, result: None, seen: None, bound: PhantomData };
    let ended = engine.deliver(meta, &key, &mut typed).await;
    match (ended, typed.result, typed.seen) {
        (Ok(Ended::Applied), Some(Ok(value)), _) => Ok(Outcome::Applied(value)),
        (Ok(Ended::Duplicate), _, Some(seen)) => Ok(Outcome::Duplicate(seen)),
        (Err(Stop::Handler), Some(Err(error)), _) => Err(Failure::Handler(Failed::new(error, meta.name, key))),
        (Err(Stop::Engine(error)), ..) => Err(Failure::Engine(error)),
        (Ok(_) | Err(Stop::Handler), ..) => unreachable!("the engine ends as the body told it"),
    }
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Whether and how a handler's result is stored with its key.
#[diagnostic::on_unimplemented(
    message = "`{T}` cannot be handed to a duplicate",
    label = "`replay` stores this value with the key",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, or leave `replay` out"
)]
pub trait Codec<T> {
    /// The stored form, if it is to be stored.
    fn write(&self, value: &T) -> Option<Result<Vec<u8>, serde_json::Error>>;

    /// The value of a stored form.
    ///
    /// # Errors
    ///
    /// When the form is not this type's.
    fn read(&self, stored: &[u8]) -> Result<Option<T>, serde_json::Error>;
}

/// The result is not stored.
#[derive(Debug, Clone, Copy)]
pub struct Forget;

impl<T> Codec<T> for Forget {
    fn write(&self, _: &T) -> Option<Result<Vec<u8>, serde_json::Error>> {
        None
    }

    fn read(&self, _: &[u8]) -> Result<Option<T>, serde_json::Error> {
        Ok(None)
    }
}

/// The result is stored as JSON.
#[derive(Debug, Clone, Copy)]
pub struct Remember;

// What `Codec` says of a type without serde is better than what serde says of it.
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Codec<T> for Remember {
    fn write(&self, value: &T) -> Option<Result<Vec<u8>, serde_json::Error>> {
        Some(serde_json::to_vec(value))
    }

    fn read(&self, stored: &[u8]) -> Result<Option<T>, serde_json::Error> {
        serde_json::from_slice(stored).map(Some)
    }
}

/// Looks for the database's error behind a handler's. Which trait answers depends on what the error type can do: method
/// look-up takes the first that is implemented for the most references.
#[derive(Debug)]
pub struct Cause<'a, E>(pub &'a E);

/// For errors that implement [`std::error::Error`].
pub trait ViaError<'a> {
    /// The database's error, if there is one.
    fn sqlx_error(&self) -> Option<&'a sqlx::Error>;
}

impl<'a, E: StdError + 'static> ViaError<'a> for &&Cause<'a, E> {
    fn sqlx_error(&self) -> Option<&'a sqlx::Error> {
        find(self.0)
    }
}

/// For `anyhow::Error` and `Box<dyn Error + Send + Sync>`.
pub trait ViaAsRef<'a> {
    /// The database's error, if there is one.
    fn sqlx_error(&self) -> Option<&'a sqlx::Error>;
}

impl<'a, E: AsRef<dyn StdError + Send + Sync>> ViaAsRef<'a> for &Cause<'a, E> {
    fn sqlx_error(&self) -> Option<&'a sqlx::Error> {
        find(self.0.as_ref())
    }
}

/// For everything else.
pub trait ViaNone<'a> {
    /// `None`: nothing is known of the error.
    fn sqlx_error(&self) -> Option<&'a sqlx::Error>;
}

impl<'a, E> ViaNone<'a> for Cause<'a, E> {
    fn sqlx_error(&self) -> Option<&'a sqlx::Error> {
        None
    }
}

fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a sqlx::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// A parameter that is moved into the handler: cloned for each run where its type can be, else there for one run.
#[derive(Debug)]
pub struct Owned<T> {
    value: Option<T>,
    clone: Option<fn(&T) -> T>,
}

/// The panic message of a body that was called more often than its plan allows.
const MOVED: &str = "the engine runs a body again only when its plan says so";

impl<T> Owned<T> {
    /// Keeps a parameter; `clone` is what [`CloneProbe`] found.
    pub fn new(value: T, clone: Option<fn(&T) -> T>) -> Self {
        Self { value: Some(value), clone }
    }

    /// Whether there is a value for more than one run.
    pub fn is_repeatable(&self) -> bool {
        self.clone.is_some()
    }

    /// The value for the next run.
    ///
    /// # Panics
    ///
    /// When it was moved already; the engine does not ask then.
    #[allow(clippy::expect_used, reason = "see MOVED")]
    pub fn for_next_run(&mut self) -> T {
        match (self.clone, &self.value) {
            (Some(clone), Some(value)) => clone(value),
            _ => self.value.take().expect(MOVED),
        }
    }
}

/// Finds out whether a parameter's type is `Clone`, the way [`Cause`] does.
#[derive(Debug)]
pub struct CloneProbe<'a, T>(pub &'a T);

/// For types that are `Clone`.
pub trait ViaClone<T> {
    /// How to clone the value.
    fn clone_fn(&self) -> Option<fn(&T) -> T>;
}

impl<T: Clone> ViaClone<T> for &CloneProbe<'_, T> {
    fn clone_fn(&self) -> Option<fn(&T) -> T> {
        Some(T::clone)
    }
}

/// For types that are not.
pub trait ViaMove<T> {
    /// `None`: it cannot be cloned.
    fn clone_fn(&self) -> Option<fn(&T) -> T>;
}

impl<T> ViaMove<T> for CloneProbe<'_, T> {
    fn clone_fn(&self) -> Option<fn(&T) -> T> {
        None
    }
}
