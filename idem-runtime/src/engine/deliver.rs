//! The heart: what happens to one delivery.
//!
//! ```text
//! begin -> claim -+-> new ----> body -+-> Ok ---> prove and commit -> Applied
//!                 |                   +-> Err, panic --> roll back, make sure that the key is gone
//!                 +-> taken ---> read the row, roll back -> Duplicate
//! ```
//!
//! Every way out of [`Engine::attempt`] either ends the lease, having ended the transaction or queued its rollback, or
//! drops it, which takes the connection out of use. Nothing is reported as applied that was not proven.
//!
//! A handler without a key goes the same way without the claim, in `unkeyed.rs`.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::Transaction;
use tokio::time::Instant;
use tracing::Instrument;

use super::Engine;
use super::body::{Body, Verdict};
use super::lease::Lease;
use super::setback::{
    KeyLeft, Next, Setback, Stop, escaped, not_begun, not_claimed, pause, refuse_unprovable, refused,
};
use crate::clock::monotonic;
use crate::error::{Error, ErrorKind};
use crate::handler::HandlerMeta;
use crate::key::Key;
use crate::store::{Claimed, CommitError, Fault, KeyRow, NewKey, Statements, Store};
use crate::telemetry;

/// How long to wait for another writer between two tries to begin, where beginning itself can be refused (SQLite).
const WRITER_PAUSE: Duration = Duration::from_millis(5);

/// The effect is committed, with its key if there is one.
#[derive(Debug)]
pub(crate) enum Ended {
    Applied,
    Duplicate,
}

impl<S: Store> Engine<S> {
    /// Runs the body in a transaction, with the key if there is one, as often as it takes, within bounds.
    pub(crate) fn deliver<'a>(
        &'a self,
        meta: &'static HandlerMeta,
        key: Option<&'a Key>,
        body: &'a mut dyn Body<S>,
    ) -> BoxFuture<'a, Result<Ended, Stop>> {
        let delivery = async move {
            let ended = self.run_until_settled(meta, key, body).await.map_err(|stop| stop.at(meta, key));
            self.inner.note(meta, matches!(ended, Ok(Ended::Duplicate)));
            telemetry::ended(meta, key, &ended);
            ended
        };
        Box::pin(delivery.instrument(telemetry::delivery::<S>(meta)))
    }

    async fn run_until_settled(
        &self,
        meta: &'static HandlerMeta,
        key: Option<&Key>,
        body: &mut dyn Body<S>,
    ) -> Result<Ended, Stop> {
        if let Some(key) = key
            && self.inner.expects_duplicate(meta)
            && let Some(ended) = self.look_first(meta, key, body).await
        {
            return ended;
        }
        let deadline = monotonic() + self.inner.claim_wait;
        let mut run = 1;
        loop {
            let ended = match key {
                #[cfg(feature = "axum")]
                key if !body.borrows() => self.attempt_lent(meta, key, body).await,
                Some(key) => self.attempt(meta, key, body).await,
                None => self.attempt_unkeyed(meta, body).await,
            };
            let setback = match ended {
                Ok(ended) => return Ok(ended),
                Err(setback) => setback,
            };
            match setback.next {
                Next::RunAgain if run < self.inner.max_runs && body.can_run_again() => {
                    telemetry::running_again(meta, run, &setback.stop);
                    tokio::time::sleep(pause(run)).await;
                    run += 1;
                }
                Next::WaitForWriter if monotonic() < deadline => tokio::time::sleep(WRITER_PAUSE).await,
                _ => return Err(setback.stop),
            }
        }
    }

    /// Looks for the key without a transaction: duplicates come in storms, and one that is found here writes nothing, locks
    /// nothing and takes one round trip. `None` where it is not found, or reading fails: then the claim decides.
    async fn look_first(
        &self,
        meta: &'static HandlerMeta,
        key: &Key,
        body: &mut dyn Body<S>,
    ) -> Option<Result<Ended, Stop>> {
        let new = self.new_key(meta, key);
        let mut lease = match self.inner.connections.take().await {
            Ok(lease) => lease,
            Err(error) => return Some(Err(Stop::Engine(error))),
        };
        let found = S::find(lease.conn(), &self.inner.statements, new).await.ok()?;
        lease.end();
        found.map(|row| self.duplicate(meta, Some(row), new, body).map_err(|setback| setback.stop))
    }

    pub(super) fn duplicate(
        &self,
        meta: &'static HandlerMeta,
        found: Option<KeyRow>,
        new: NewKey<'_>,
        body: &mut dyn Body<S>,
    ) -> Result<Ended, Setback> {
        let Some(row) = found else {
            return Err(Setback::run_again(Error::new(ErrorKind::Database).detail(
                "it says that the key is taken, but has no such row; it was purged meanwhile, or the table has a unique index \
                 that is not the library's",
            )));
        };
        if let (Some(new), Some(first)) = (new.fingerprint, &row.fingerprint)
            && new != first
        {
            return Err(Setback::give_up(Error::new(ErrorKind::Mismatch)));
        }
        let age = u64::try_from(row.now_micros.saturating_sub(row.claimed_micros)).unwrap_or(0);
        let age = Duration::from_micros(age);
        telemetry::duplicate(meta.name, age);
        self.note_duplicate_age(meta.name, age.as_secs());
        body.seen(row).map(|()| Ended::Duplicate).map_err(|error| {
            let detail = "the event was applied, but its stored result no longer reads as the handler's result type";
            Setback::give_up(Error::new(ErrorKind::Replay).detail(detail).source(error))
        })
    }

    pub(super) fn new_key<'k>(&self, meta: &'static HandlerMeta, key: &'k Key) -> NewKey<'k> {
        NewKey {
            handler: meta.name,
            event_key: key.as_str(),
            claim: self.inner.next_attempt(),
            fingerprint: key.fingerprint().map(<[u8; 32]>::as_slice),
            timed: key.occurred_at().is_some(),
        }
    }

    /// One run: one connection, one transaction.
    async fn attempt(&self, meta: &'static HandlerMeta, key: &Key, body: &mut dyn Body<S>) -> Result<Ended, Setback> {
        let inner = &*self.inner;
        let new = self.new_key(meta, key);
        let mut lease = inner.connections.take().await.map_err(Setback::give_up)?;
        let mut tx = S::begin(lease.conn(), &inner.statements.begin).await.map_err(not_begun::<S>)?;

        let begun = telemetry::Timer::start();
        let claimed = S::claim(&mut tx, &inner.statements, new).await;
        telemetry::claimed(begun);
        let claimed = match claimed {
            Ok(Claimed::New { clock: Some(clock) }) => refuse_unprovable(meta, key, clock),
            Ok(Claimed::New { clock: None }) => Ok(()),
            Ok(Claimed::Taken) => {
                let found = S::find(&mut tx, &inner.statements, new).await.map_err(not_claimed::<S>)?;
                // Dropping it queues the rollback, which travels with whatever the connection does next.
                drop(tx);
                lease.end();
                return self.duplicate(meta, found, new, body);
            }
            Err(error) => Err(not_claimed::<S>(error)),
        };
        if let Err(setback) = claimed {
            if S::rollback(tx).await {
                lease.end();
            }
            return Err(setback);
        }

        let started = monotonic();
        let done = match body.run(tx).await {
            (Some(tx), Verdict::Done { result }) => Ok(store_and_commit(tx, &inner.statements, new, result).await),
            (Some(tx), verdict) => Err((S::rollback(tx).await, verdict)),
            (None, verdict) => Err((false, verdict)),
        };
        let (clean, verdict) = match done {
            Ok(committed) => return self.after_commit(meta, lease, committed, Some(new), body).await,
            Err(rolled_back) => rolled_back,
        };
        // A handler that commits by hand and then fails leaves its key behind: the redelivery would be a duplicate.
        match S::find(lease.conn(), &inner.statements, new).await {
            Ok(Some(row)) if row.claim == new.claim => return Err(escaped(KeyLeft::Stored, None)),
            Ok(_) if clean => lease.end(),
            _ => {}
        }
        Err(self.setback(meta, verdict, started))
    }

    pub(super) fn setback(&self, meta: &'static HandlerMeta, verdict: Verdict, started: Instant) -> Setback {
        match verdict {
            Verdict::Failed { contention } => {
                self.inner.connections.hint_at_second_connection(meta, started);
                Setback { stop: Stop::Handler, next: if contention { Next::RunAgain } else { Next::GiveUp } }
            }
            Verdict::Panicked(message) => Setback::give_up(Error::new(ErrorKind::Panicked).detail(message)),
            Verdict::Unwritable(error) => Setback::give_up(
                Error::new(ErrorKind::Replay)
                    .detail("the result cannot be written, so nothing was stored")
                    .source(error),
            ),
            Verdict::Done { .. } => unreachable!("a body that is done gives its transaction back"),
        }
    }

    pub(super) async fn after_commit(
        &self,
        meta: &'static HandlerMeta,
        lease: Lease<'_, S>,
        committed: Result<(), CommitError>,
        new: Option<NewKey<'_>>,
        body: &mut dyn Body<S>,
    ) -> Result<Ended, Setback> {
        match committed {
            Ok(()) => {
                lease.end();
                Ok(Ended::Applied)
            }
            Err(CommitError::Aborted(error)) => {
                lease.end();
                Err(Setback::give_up(Error::new(ErrorKind::Aborted).source(error)))
            }
            Err(CommitError::Refused(error)) => {
                if S::fault(&error) != Fault::ConnectionLost {
                    lease.end();
                }
                Err(refused::<S>(error))
            }
            Err(CommitError::Escaped(error)) => {
                drop(lease);
                let left = match new {
                    Some(new) => self.key_left(new).await,
                    None => KeyLeft::None,
                };
                Err(escaped(left, Some(error)))
            }
            Err(CommitError::Lost(error)) => {
                drop(lease);
                match new {
                    Some(new) => self.resolve(meta, new, error, body).await,
                    None => Err(Setback::give_up(Error::new(ErrorKind::CommitUnknown).source(error))),
                }
            }
        }
    }

    /// The connection was lost during the commit: asks on a fresh one what became of it.
    async fn resolve(
        &self,
        meta: &'static HandlerMeta,
        new: NewKey<'_>,
        lost: sqlx::Error,
        body: &mut dyn Body<S>,
    ) -> Result<Ended, Setback> {
        match self.look_up(new).await {
            Ok(Some(row)) if row.claim == new.claim => Ok(Ended::Applied),
            // Another delivery of the event came between.
            Ok(row @ Some(_)) => self.duplicate(meta, row, new, body),
            Ok(None) => Err(Setback::give_up(
                Error::new(ErrorKind::Commit)
                    .detail("the connection was lost, and a fresh one finds that the commit did not happen")
                    .source(lost),
            )),
            Err(error) => Err(Setback::give_up(
                Error::new(ErrorKind::CommitUnknown).detail(format!("asking failed with \"{error}\"")).source(lost),
            )),
        }
    }

    pub(super) async fn key_left(&self, new: NewKey<'_>) -> KeyLeft {
        match self.look_up(new).await {
            Ok(Some(row)) if row.claim == new.claim => KeyLeft::Stored,
            Ok(_) => KeyLeft::NotStored,
            Err(_) => KeyLeft::Unknown,
        }
    }

    /// Reads the key on a fresh connection. Claims it first, and gives the claim up again: that waits for a transaction
    /// that is still about to commit it, so that "not there" is an answer that stays true.
    pub(super) async fn look_up(&self, new: NewKey<'_>) -> sqlx::Result<Option<KeyRow>> {
        let inner = &*self.inner;
        let mut lease = inner.connections.take_tested().await?;
        let mut tx = S::begin(lease.conn(), &inner.statements.begin).await?;
        let probe = NewKey { claim: inner.next_attempt(), timed: false, ..new };
        let found = match S::claim(&mut tx, &inner.statements, probe).await? {
            Claimed::New { .. } => None,
            Claimed::Taken => S::find(&mut tx, &inner.statements, new).await?,
        };
        if S::rollback(tx).await {
            lease.end();
        }
        Ok(found)
    }
}

impl Ended {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
        }
    }
}

async fn store_and_commit<S: Store>(
    mut tx: Transaction<'_, S>,
    statements: &Statements,
    new: NewKey<'_>,
    result: Option<Vec<u8>>,
) -> Result<(), CommitError> {
    if let Some(result) = result
        && let Err(error) = S::store_result(&mut tx, statements, new, &result).await
    {
        S::rollback(tx).await;
        return Err(error);
    }
    S::commit(tx).await
}
