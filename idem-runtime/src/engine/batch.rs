//! Many deliveries of one handler in one transaction.
//!
//! ```text
//! begin -> claim all, in order -+-> new ---> bodies, one after the other -> prove and commit -> Applied
//!                               +-> taken -> read the rows --------------------------------> Duplicate
//! ```
//!
//! It is a bet that nothing fails, and pays for no savepoints. When it is lost, all is rolled back, and whoever is not
//! decided is delivered alone, by `deliver.rs`: so a message that fails takes no other one down, and there is one place
//! that knows how a failure ends.

use std::collections::HashSet;

use sqlx::Transaction;
use tracing::Instrument;

use super::Engine;
use super::body::{Body, Prepared, Verdict, handled};
use super::deliver::Ended;
use super::lease::Lease;
use super::setback::{KeyLeft, Stop, escaped, refuse_unprovable};
use super::slice::{AnySlice, Slice};
use crate::error::{Error, ErrorKind};
use crate::handler::{Handled, Handler, HandlerMeta, HandlerResult, Semantics};
use crate::key::Key;
use crate::store::{Claimed, CommitError, Fault, KeyRow, NewKey, Store};
use crate::telemetry;

/// A message's place in the batch, and its key.
#[derive(Clone, Copy)]
struct Keyed<'b> {
    place: usize,
    key: &'b Key,
    new: NewKey<'b>,
}

/// A message of the batch.
struct Member<'b, S: Store> {
    keyed: Keyed<'b>,
    body: &'b mut dyn Body<S>,
}

/// What the batch came to for the message at this place.
type Decided<'b> = (usize, &'b Key, Result<Ended, Stop>);

/// How the bodies ran.
enum Ran<'t, S: Store> {
    All(Transaction<'t, S>),
    /// One of them failed. Says whether the connection is clean.
    Failed(bool),
    /// The transaction was over behind the one at this place among them.
    Escaped(usize),
}

/// How the transaction ended.
enum Over {
    Committed(Result<(), CommitError>),
    /// No body ran. Says whether the connection is clean.
    Unused(bool),
    /// A body failed, and all is rolled back. Says whether the connection is clean.
    Failed(bool),
    /// It was over behind the body at this place among them.
    Escaped(usize),
}

impl<S: Store> Engine<S> {
    /// Applies the events of many messages, once each, and says of each how it ended, in their order. The messages share a
    /// transaction as long as none of them fails, which spares a commit for each; those that fail end alone.
    ///
    /// A key that comes twice is applied once. A handler with effects outside the database, or without a key, gets its
    /// messages one by one: a transaction that many share may be rolled back, and run again, for the sake of one.
    ///
    /// All keys are claimed first, in one order whoever claims them. A hundred messages at a time gain nearly all there is
    /// to gain; more of them hold locks for longer.
    ///
    /// # Errors
    ///
    /// Each message has its own, as [`Failure`](crate::Failure) says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls back what is not committed: each message was applied as a whole, or is new.
    ///
    /// # Example
    ///
    /// ```standalone_crate
    /// use idem_runtime::{Engine, Outcome, idempotent};
    /// use sqlx::{Sqlite, Transaction};
    ///
    /// struct Paid {
    ///     order_id: &'static str,
    /// }
    ///
    /// #[idempotent(key(msg.order_id), retention = "7d")]
    /// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    ///     sqlx::query("INSERT INTO credit VALUES (?)").bind(msg.order_id).execute(&mut **tx).await?;
    ///     Ok(())
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    /// # sqlx::query("CREATE TABLE credit (order_id TEXT)").execute(&pool).await?;
    /// # idem_runtime::migrate(&pool).await?;
    /// # let engine = Engine::start(pool).await?;
    /// let messages = [Paid { order_id: "ord_1" }, Paid { order_id: "ord_2" }, Paid { order_id: "ord_1" }];
    /// let outcomes = engine.handle_batch::<credit>(&messages.each_ref(), &()).await;
    /// assert!(matches!(outcomes[..], [Ok(Outcome::Applied(())), Ok(Outcome::Applied(())), Ok(Outcome::Duplicate(_))]));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn handle_batch<H: Handler<S>>(
        &self,
        messages: &[&H::Message],
        state: &H::State,
    ) -> Vec<Handled<H::Returned>> {
        let mut outcomes = Vec::with_capacity(messages.len());
        for (message, decided) in messages.iter().zip(self.try_batch::<H>(messages, state).await) {
            outcomes.push(match decided {
                Some(handled) => handled,
                None => H::call(self, message, state).await,
            });
        }
        outcomes
    }

    /// The same, with `None` for the messages that must be delivered alone.
    pub(crate) async fn try_batch<H: Handler<S>>(
        &self,
        messages: &[&H::Message],
        state: &H::State,
    ) -> Vec<Option<Handled<H::Returned>>> {
        let (meta, none) = (H::META, || messages.iter().map(|_| None).collect());
        if messages.len() < 2 || !meta.external.is_empty() || meta.semantics != Semantics::Idempotent {
            return none();
        }
        let mut prepared: Vec<_> = messages.iter().map(|message| H::prepare(message, state)).collect();
        let mut slice = H::APPLIES_ALL.then(|| Slice::<S, H>::new(messages, state));
        let claim = self.inner.next_attempt();
        let members = members(meta, claim, &mut prepared);
        let any_slice = slice.as_mut().map(|slice| slice as &mut dyn AnySlice<S>);
        let span = telemetry::batch::<S>(meta, messages.len());
        let decided = self.attempt_batch(meta, members, any_slice).instrument(span).await;
        let decided: Vec<_> = decided.into_iter().map(|(place, _, ended)| (place, ended)).collect();
        let mut outcomes: Vec<_> = none();
        for (place, ended) in decided {
            let Some(Prepared { key: Some(Ok(Ok(key))), mut body, .. }) = prepared[place].take() else { continue };
            if let (Ok(Ended::Applied), Some(value)) = (&ended, slice.as_ref().and_then(Slice::value)) {
                body.applied(value);
            }
            let (result, seen) = body.take();
            outcomes[place] = Some(handled::<H::Returned>(ended, result, seen, meta, Some(key)));
        }
        outcomes
    }

    async fn attempt_batch<'b>(
        &self,
        meta: &'static HandlerMeta,
        members: Vec<Member<'b, S>>,
        slice: Option<&mut dyn AnySlice<S>>,
    ) -> Vec<Decided<'b>> {
        let keys: Vec<_> = members.iter().map(|member| (member.keyed.place, member.keyed.key)).collect();
        let lease = match self.inner.connections.take().await {
            Ok(lease) => lease,
            Err(error) => return no_connection(meta, keys, error),
        };
        let mut decided = self.run_batch(meta, lease, members, slice).await;
        for (_, key, ended) in &mut decided {
            if let Err(Stop::Engine(_)) = ended {
                let stop = std::mem::replace(ended, Err(Stop::Handler));
                *ended = stop.map_err(|stop| stop.at(meta, Some(key)));
            }
            self.inner.note(meta, matches!(ended, Ok(Ended::Duplicate)));
            telemetry::ended(meta, Some(key), ended);
        }
        decided
    }

    /// One run, on one connection. Leaves out who is to be delivered alone.
    async fn run_batch<'b>(
        &self,
        meta: &'static HandlerMeta,
        mut lease: Lease<'_, S>,
        members: Vec<Member<'b, S>>,
        slice: Option<&mut dyn AnySlice<S>>,
    ) -> Vec<Decided<'b>> {
        let (fresh, decided, over) = self.run_transaction(meta, &mut lease, members, slice).await;
        let ended = match over {
            Over::Committed(committed) => self.after_batch_commit(meta, lease, committed, fresh).await,
            Over::Unused(is_clean) => {
                if is_clean {
                    lease.end();
                }
                Vec::new()
            }
            Over::Failed(is_clean) => self.rolled_back(lease, is_clean, &keyed(&fresh)).await,
            Over::Escaped(last) => {
                drop(lease);
                self.escaped_behind(last, &keyed(&fresh)).await
            }
        };
        decided.into_iter().chain(ended).collect()
    }

    /// Gives the messages that were new, those that are decided already, and how the transaction ended.
    async fn run_transaction<'b>(
        &self,
        meta: &'static HandlerMeta,
        lease: &mut Lease<'_, S>,
        members: Vec<Member<'b, S>>,
        slice: Option<&mut dyn AnySlice<S>>,
    ) -> (Vec<Member<'b, S>>, Vec<Decided<'b>>, Over) {
        let Ok(mut tx) = S::begin(lease.conn(), &self.inner.statements.begin).await else {
            return (Vec::new(), Vec::new(), Over::Unused(false));
        };
        let Some((mut fresh, decided)) = self.claim_all(meta, &mut tx, members).await else {
            return (Vec::new(), Vec::new(), Over::Unused(S::rollback(tx).await));
        };
        if fresh.is_empty() {
            // Dropping it queues the rollback, which travels with whatever the connection does next.
            drop(tx);
            return (fresh, decided, Over::Unused(true));
        }
        let places: Vec<_> = fresh.iter().map(|member| member.keyed.place).collect();
        let ran = match slice {
            Some(slice) => run_slice(tx, slice, &places).await,
            None => self.run_bodies(tx, &mut fresh).await,
        };
        let over = end(ran).await;
        (fresh, decided, over)
    }

    /// Claims every key, and tells the duplicates. The new ones come back in the order of the messages. `None` if the
    /// transaction is of no use.
    async fn claim_all<'b>(
        &self,
        meta: &'static HandlerMeta,
        tx: &mut Transaction<'_, S>,
        members: Vec<Member<'b, S>>,
    ) -> Option<(Vec<Member<'b, S>>, Vec<Decided<'b>>)> {
        let statements = &self.inner.statements;
        let keys: Vec<_> = members.iter().map(|member| member.keyed.new).collect();
        let begun = telemetry::Timer::start();
        let claimed = S::claim_all(tx, statements, &keys).await.ok()?;
        telemetry::claimed(begun);
        let (mut fresh, mut taken) = (Vec::new(), Vec::new());
        for (member, claimed) in members.into_iter().zip(claimed) {
            match claimed {
                Claimed::New { clock: Some(clock) } if refuse_unprovable(meta, member.keyed.key, clock).is_err() => {
                    return None;
                }
                Claimed::New { .. } => fresh.push(member),
                Claimed::Taken => taken.push(member),
            }
        }
        let keys: Vec<_> = taken.iter().map(|member| member.keyed.new).collect();
        let rows = S::find_all(tx, statements, &keys).await.ok()?;
        let mut decided = Vec::new();
        for (Member { keyed: Keyed { place, key, new }, body }, row) in taken.into_iter().zip(rows) {
            if row.is_some() {
                let ended = self.duplicate(meta, row, new, body).map_err(|setback| setback.stop);
                decided.push((place, key, ended));
            }
        }
        fresh.sort_unstable_by_key(|member| member.keyed.place);
        Some((fresh, decided))
    }

    async fn run_bodies<'t>(&self, mut tx: Transaction<'t, S>, fresh: &'t mut [Member<'_, S>]) -> Ran<'t, S> {
        for (place, member) in fresh.iter_mut().enumerate() {
            let (back, verdict) = member.body.run(tx).await;
            let Some(back) = back else { return Ran::Failed(false) };
            tx = back;
            let stored = match verdict {
                Verdict::Done { result: None } => true,
                Verdict::Done { result: Some(result) } => {
                    S::store_result(&mut tx, &self.inner.statements, member.keyed.new, &result).await.is_ok()
                }
                _ => false,
            };
            if !stored {
                return Ran::Failed(S::rollback(tx).await);
            }
            if !S::intact(&mut tx).await {
                S::rollback(tx).await;
                return Ran::Escaped(place);
            }
        }
        Ran::All(tx)
    }

    async fn after_batch_commit<'b>(
        &self,
        meta: &'static HandlerMeta,
        lease: Lease<'_, S>,
        committed: Result<(), CommitError>,
        fresh: Vec<Member<'b, S>>,
    ) -> Vec<Decided<'b>> {
        match committed {
            Ok(()) => {
                lease.end();
                fresh.iter().map(|member| (member.keyed.place, member.keyed.key, Ok(Ended::Applied))).collect()
            }
            // Alone, they find out which of them it was.
            Err(CommitError::Aborted(_)) => {
                lease.end();
                Vec::new()
            }
            Err(CommitError::Refused(error)) => {
                if S::fault(&error) != Fault::ConnectionLost {
                    lease.end();
                }
                Vec::new()
            }
            Err(CommitError::Escaped(_)) => {
                drop(lease);
                self.escaped_behind(fresh.len(), &keyed(&fresh)).await
            }
            Err(CommitError::Lost(_)) => {
                drop(lease);
                self.resolve_all(meta, fresh).await
            }
        }
    }

    /// The connection was lost during the commit: asks on a fresh one what became of each.
    async fn resolve_all<'b>(&self, meta: &'static HandlerMeta, fresh: Vec<Member<'b, S>>) -> Vec<Decided<'b>> {
        let mut decided = Vec::new();
        let mut unknown = None;
        for Member { keyed: Keyed { place, key, new }, body } in fresh {
            let found = match &unknown {
                None => self.look_up(new).await.map_err(|error| error.to_string()),
                Some(error) => Err(String::clone(error)),
            };
            let ended = match found {
                Ok(Some(row)) if row.claim == new.claim => Ok(Ended::Applied),
                Ok(row @ Some(_)) => self.duplicate(meta, row, new, body).map_err(|setback| setback.stop),
                Ok(None) => continue,
                Err(error) => {
                    let detail = format!("asking failed with \"{error}\"");
                    unknown = Some(error);
                    Err(Stop::Engine(Error::new(ErrorKind::CommitUnknown).detail(detail)))
                }
            };
            decided.push((place, key, ended));
        }
        decided
    }

    /// A handler that commits by hand and then fails leaves the keys of all behind.
    async fn rolled_back<'b>(&self, mut lease: Lease<'_, S>, clean: bool, fresh: &[Keyed<'b>]) -> Vec<Decided<'b>> {
        let keys: Vec<_> = fresh.iter().map(|keyed| keyed.new).collect();
        let Ok(rows) = S::find_all(lease.conn(), &self.inner.statements, &keys).await else { return Vec::new() };
        let is_ours =
            |row: &Option<KeyRow>, keyed: &Keyed<'_>| row.as_ref().is_some_and(|row| row.claim == keyed.new.claim);
        let left = fresh.iter().zip(&rows).filter(|(keyed, row)| is_ours(row, keyed));
        let left: Vec<_> =
            left.map(|(keyed, _)| (keyed.place, keyed.key, Err(escaped(KeyLeft::Stored, None).stop))).collect();
        if clean && left.is_empty() {
            lease.end();
        }
        left
    }

    /// One of the bodies ended the transaction. Those behind it did not run: without a key they are new, and with one, a
    /// redelivery would be taken for a duplicate.
    async fn escaped_behind<'b>(&self, last: usize, fresh: &[Keyed<'b>]) -> Vec<Decided<'b>> {
        let mut decided = Vec::new();
        for (index, Keyed { place, key, new }) in fresh.iter().enumerate() {
            let left = self.key_left(*new).await;
            if index <= last || !matches!(left, KeyLeft::NotStored) {
                decided.push((*place, *key, Err(escaped(left, None).stop)));
            }
        }
        decided
    }
}

fn keyed<'b, S: Store>(members: &[Member<'b, S>]) -> Vec<Keyed<'b>> {
    members.iter().map(|member| member.keyed).collect()
}

/// The messages with a usable key, the first of each, sorted by it.
fn members<'b, S: Store, R: HandlerResult>(
    meta: &'static HandlerMeta,
    claim: i64,
    prepared: &'b mut [Option<Prepared<'_, S, R>>],
) -> Vec<Member<'b, S>> {
    let mut known = HashSet::new();
    let mut members: Vec<Member<'b, S>> = Vec::new();
    for (place, prepared) in prepared.iter_mut().enumerate() {
        let Some(Prepared { key: Some(Ok(Ok(key))), body, .. }) = prepared else { continue };
        let key: &'b Key = key;
        let new = NewKey {
            handler: meta.name,
            event_key: key.as_str(),
            claim,
            fingerprint: key.fingerprint().map(<[u8; 32]>::as_slice),
            timed: key.occurred_at().is_some(),
        };
        if known.insert(new.event_key) {
            members.push(Member { keyed: Keyed { place, key, new }, body: &mut **body });
        }
    }
    members.sort_unstable_by_key(|member| member.keyed.new.event_key);
    members
}

async fn run_slice<'t, S: Store>(
    tx: Transaction<'t, S>,
    slice: &'t mut dyn AnySlice<S>,
    places: &'t [usize],
) -> Ran<'t, S> {
    match slice.run(tx, places).await {
        (Some(tx), true) => Ran::All(tx),
        (Some(tx), false) => Ran::Failed(S::rollback(tx).await),
        (None, _) => Ran::Failed(false),
    }
}

async fn end<S: Store>(ran: Ran<'_, S>) -> Over {
    match ran {
        Ran::All(tx) => Over::Committed(S::commit(tx).await),
        Ran::Failed(is_clean) => Over::Failed(is_clean),
        Ran::Escaped(last) => Over::Escaped(last),
    }
}

/// Nobody got one, and each alone would wait for it as long again.
fn no_connection<'b>(meta: &'static HandlerMeta, keys: Vec<(usize, &'b Key)>, error: Error) -> Vec<Decided<'b>> {
    let kind = error.kind();
    let mut first = Some(error);
    let mut failed = |(place, key)| {
        let error = first.take().unwrap_or_else(|| Error::new(kind).detail("the batch got no connection"));
        let ended = Err(Stop::Engine(error.at(meta, Some(key))));
        telemetry::ended(meta, Some(key), &ended);
        (place, key, ended)
    };
    keys.into_iter().map(&mut failed).collect()
}
