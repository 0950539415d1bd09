//! A naturally idempotent handler: begin, body, prove and commit, without a claim.
//!
//! Nobody asks whether the event came before, and nothing can be looked up afterwards. What went wrong ends as a
//! redelivery, which changes nothing.

use super::Engine;
use super::body::{Body, Verdict};
use super::deliver::Ended;
use super::setback::{Setback, not_begun};
use crate::clock::monotonic;
use crate::handler::HandlerMeta;
use crate::store::Store;

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
            Ok(committed) => self.after_commit(meta, lease, committed, None, body).await,
            Err((clean, verdict)) => {
                if clean {
                    lease.end();
                }
                Err(self.setback(meta, verdict, started))
            }
        }
    }
}
