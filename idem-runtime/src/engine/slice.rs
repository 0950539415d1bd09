//! The body of a handler that takes the new messages of a batch at once, for SQL that works on sets.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::Transaction;

use super::body::Attempt;
use crate::handler::{Handler, HandlerResult};
use crate::store::Store;

/// What such a body returns: how to make the value of each message, which is `()`, or why it failed.
pub type SliceReturned<R> = Result<fn() -> <R as HandlerResult>::Ok, <R as HandlerResult>::Err>;

/// Runs such a body. What generated code calls.
pub fn slice<'t, R>(body: impl Future<Output = R> + Send + 't) -> BoxFuture<'t, SliceReturned<R>>
where
    R: HandlerResult<Ok = ()>,
{
    Box::pin(async { body.await.into_result().map(|()| (|| ()) as fn()) })
}

/// The body without its types.
pub(super) trait AnySlice<S: Store>: Send {
    /// Runs it for the messages at these places. Gives the transaction back, unless a panic has taken it, and says whether
    /// all is well.
    fn run<'t>(
        &'t mut self,
        tx: Transaction<'t, S>,
        places: &'t [usize],
    ) -> BoxFuture<'t, (Option<Transaction<'t, S>>, bool)>;
}

/// The body with its messages, and what it came to.
pub(super) struct Slice<'b, S: Store, H: Handler<S>> {
    messages: &'b [&'b H::Message],
    state: &'b H::State,
    value: Option<fn() -> <H::Returned as HandlerResult>::Ok>,
}

impl<'b, S: Store, H: Handler<S>> Slice<'b, S, H> {
    pub(super) fn new(messages: &'b [&'b H::Message], state: &'b H::State) -> Self {
        Self { messages, state, value: None }
    }

    /// What each message comes to.
    pub(super) fn value(&self) -> Option<<H::Returned as HandlerResult>::Ok> {
        self.value.map(|make| make())
    }
}

impl<S: Store, H: Handler<S>> AnySlice<S> for Slice<'_, S, H> {
    fn run<'t>(
        &'t mut self,
        mut tx: Transaction<'t, S>,
        places: &'t [usize],
    ) -> BoxFuture<'t, (Option<Transaction<'t, S>>, bool)> {
        Box::pin(async move {
            let fresh: Vec<&H::Message> = places.iter().map(|place| self.messages[*place]).collect();
            let users = async {
                let body = H::apply_all(Attempt::new(&mut tx), &fresh, self.state)?;
                Some(body.await)
            };
            // The transaction is rolled back and everything the body owned is gone: nothing broken can be seen.
            match AssertUnwindSafe(users).catch_unwind().await {
                Ok(Some(Ok(value))) => {
                    self.value = Some(value);
                    (Some(tx), true)
                }
                Ok(_) => (Some(tx), false),
                Err(_) => (None, false),
            }
        })
    }
}
