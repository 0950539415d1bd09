//! A naturally idempotent handler: begin, body, prove and commit, without a claim.
//!
//! Nobody asks whether the event came before, and nothing can be looked up afterwards. What went wrong ends as a
//! redelivery, which changes nothing.

use futures_util::future::BoxFuture;

use super::Engine;
use super::body::{Attempt, Body, Typed, Verdict, handled};
use super::codec::Forget;
use super::deliver::Ended;
use super::setback::{Setback, not_begun};
use crate::clock::monotonic;
use crate::handler::{Handled, HandlerMeta, HandlerResult};
use crate::store::Store;

/// What generated code knows of a handler without a key beside its body.
#[derive(Debug)]
pub struct Unkeyed<E> {
    /// The registered facts.
    pub meta: &'static HandlerMeta,
    /// Whether the body can be called more than once.
    pub repeatable: bool,
    /// Finds the database's error behind the handler's, through [`Cause`](super::Cause).
    pub cause: fn(&E) -> Option<&sqlx::Error>,
}

/// Runs a handler's body in a transaction of its own, without a key. What a naturally idempotent function calls.
///
/// # Errors
///
/// As [`Failure`](crate::Failure) says.
///
/// # Cancel safety
///
/// Dropping the future rolls back. Dropped while the commit is under way, the effect is stored or it is not.
pub fn run_unkeyed<'up, S, R, F>(engine: &'up Engine<S>, plan: Unkeyed<R::Err>, body: F) -> BoxFuture<'up, Handled<R>>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send> + 'up,
    F: for<'c, 't> FnMut(Attempt<'up, 'c, 't, S>) -> BoxFuture<'t, R> + Send + 'up,
{
    let Unkeyed { meta, repeatable, cause } = plan;
    Box::pin(async move {
        let mut typed = Typed::<R, F, Forget>::new(body, Forget, repeatable, cause);
        let ended = engine.deliver(meta, None, &mut typed).await;
        handled::<R>(ended, typed.result, None, meta, None)
    })
}

impl<S: Store> Engine<S> {
    /// One run: one connection, one transaction, no key.
    pub(super) async fn attempt_unkeyed(
        &self,
        meta: &'static HandlerMeta,
        body: &mut dyn Body<S>,
    ) -> Result<Ended, Setback> {
        let inner = &*self.inner;
        let mut lease = inner.connections.take().await.map_err(Setback::give_up)?;
        let tx = S::begin(lease.conn(), &inner.statements.begin_unkeyed).await.map_err(not_begun::<S>)?;

        let started = monotonic();
        let done = match body.run(tx).await {
            (Some(tx), Verdict::Done { .. }) => Ok(S::commit(tx).await),
            (Some(tx), verdict) => Err((S::rollback(tx).await, verdict)),
            (None, verdict) => Err((false, verdict)),
        };
        match done {
            Ok(committed) => self.after_commit(lease, committed, None, body).await,
            Err((clean, verdict)) => {
                if clean {
                    lease.end();
                }
                Err(self.setback(meta, verdict, started))
            }
        }
    }
}
