//! From a message to a handler: whether it takes the message, how the body becomes its message type, and the call.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::super::Incoming;
use crate::engine::{Engine, panic_text};
use crate::error::{Error, ErrorKind, Failure};
use crate::handler::{Handler, HandlerMeta, HandlerResult, Semantics};
use crate::outcome::Settle;
use crate::store::Store;

/// The handler's own error.
type HandlerError<S, H> = <<H as Handler<S>>::Returned as HandlerResult>::Err;

/// Why a body is not the handler's message.
type Undecodable = Box<dyn StdError + Send + Sync>;

type Decode<M> = Arc<dyn Fn(&Incoming) -> Result<M, Undecodable> + Send + Sync>;

type Takes = Arc<dyn Fn(&Incoming) -> bool + Send + Sync>;

/// Leads messages to a handler: `route::<_, credit_balance>()`.
///
/// It takes every message, and decodes it as JSON, unless told otherwise.
#[must_use = "a consumer has it by `Consumer::route`"]
pub struct Route<S: Store, H: Handler<S>>
where
    H::Message: Sized,
{
    takes: Option<Takes>,
    decode: Decode<H::Message>,
    state: Arc<H::State>,
}

/// A route to a handler without a state, for bodies in JSON.
pub fn route<S, H>() -> Route<S, H>
where
    S: Store,
    H: Handler<S, State = ()>,
    H::Message: DeserializeOwned,
{
    Route::with_state(Arc::new(()))
}

impl<S: Store, H: Handler<S>> Route<S, H>
where
    H::Message: Sized,
{
    /// A route to a handler that takes a state beside its message, for bodies in JSON.
    pub fn with_state(state: Arc<H::State>) -> Self
    where
        H::Message: DeserializeOwned,
    {
        Self::decoded_by(state, |incoming| serde_json::from_slice(&incoming.body).map_err(Undecodable::from))
    }

    /// A route with a decoder of your own. What it refuses is dead-lettered, with its words as the reason.
    pub fn decoded_by(
        state: Arc<H::State>,
        decode: impl Fn(&Incoming) -> Result<H::Message, Undecodable> + Send + Sync + 'static,
    ) -> Self {
        Self { takes: None, decode: Arc::new(decode), state }
    }

    /// Takes only the messages for which this holds. It must always say the same of one message: a message that no route
    /// takes is dead-lettered.
    pub fn when(mut self, takes: impl Fn(&Incoming) -> bool + Send + Sync + 'static) -> Self {
        self.takes = Some(Arc::new(takes));
        self
    }
}

impl<S: Store, H: Handler<S>> fmt::Debug for Route<S, H>
where
    H::Message: Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("handler", &H::META.name).finish_non_exhaustive()
    }
}

/// How one handler ended with one message.
#[derive(Debug)]
pub(crate) enum Handled {
    /// Applied, now or before.
    Done,
    /// Not applied, and how to settle that. `text` can hold what the handler's error says.
    Failed { settle: Settle, kind: Option<ErrorKind>, text: String },
}

/// A call that waits to be awaited.
pub(crate) type Call<'a> = BoxFuture<'a, Handled>;

/// A route without the handler's types.
pub(crate) trait Routed<S: Store>: Send + Sync {
    fn meta(&self) -> &'static HandlerMeta;

    fn takes(&self, incoming: &Incoming) -> bool;

    /// Decodes the message, and is ready to apply it.
    fn prepare<'a>(&'a self, engine: &'a Engine<S>, incoming: &Incoming) -> Result<Call<'a>, Error>;

    /// Applies many messages in one transaction, and says of each whether it is done. What is not is handled alone.
    fn apply_batch<'a>(&'a self, engine: &'a Engine<S>, incoming: Vec<&'a Incoming>) -> BoxFuture<'a, Vec<bool>>;

    fn is_at_most_once(&self) -> bool {
        matches!(self.meta().semantics, Semantics::AtMostOnce { .. })
    }
}

impl<S, H> Routed<S> for Route<S, H>
where
    S: Store,
    H: Handler<S>,
    H::Message: Sized + Send + Sync + 'static,
    H::State: Send + Sync + 'static,
    HandlerError<S, H>: fmt::Display,
{
    fn meta(&self) -> &'static HandlerMeta {
        H::META
    }

    fn takes(&self, incoming: &Incoming) -> bool {
        self.takes.as_ref().is_none_or(|takes| takes(incoming))
    }

    fn prepare<'a>(&'a self, engine: &'a Engine<S>, incoming: &Incoming) -> Result<Call<'a>, Error> {
        let malformed = |text: String| Error::new(ErrorKind::Malformed).detail(text).at(H::META, None);
        // It only reads the message, so nothing broken can be seen.
        let decoded = catch_unwind(AssertUnwindSafe(|| (self.decode)(incoming)));
        let message = decoded
            .map_err(|panic: Box<dyn Any + Send>| malformed(format!("its decoder panicked: {}", panic_text(&*panic))))?
            .map_err(|error| malformed(error.to_string()))?;
        Ok(Box::pin(async move {
            match H::call(engine, &message, &self.state).await {
                Ok(_) => Handled::Done,
                Err(failure) => failed(&failure),
            }
        }))
    }

    fn apply_batch<'a>(&'a self, engine: &'a Engine<S>, incoming: Vec<&'a Incoming>) -> BoxFuture<'a, Vec<bool>> {
        Box::pin(async move {
            let decoded: Vec<_> = incoming.into_iter().map(|incoming| (self.decode)(incoming).ok()).collect();
            let messages: Vec<_> = decoded.iter().flatten().collect();
            let mut handled = engine.try_batch::<H>(&messages, &self.state).await.into_iter();
            let mut is_done = || handled.next().is_some_and(|handled| matches!(handled, Some(Ok(_))));
            decoded.iter().map(|decoded| decoded.is_some() && is_done()).collect()
        })
    }
}

fn failed<E: fmt::Display>(failure: &Failure<E>) -> Handled {
    let text = match failure {
        Failure::Handler(failed) => format!("handler `{}` returned an error: {}", failed.handler, failed.error),
        Failure::Engine(error) => format!("handler `{}`: {}", error.handler().unwrap_or_default(), error.what()),
    };
    Handled::Failed { settle: failure.settle(), kind: failure.kind(), text }
}
