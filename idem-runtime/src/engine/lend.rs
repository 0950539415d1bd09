//! A delivery whose body owns the connection for a time: the handler of an HTTP request takes it out of the request, which
//! no borrow reaches.
//!
//! The same steps as `attempt` in `deliver.rs`, on the connection itself.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;

use super::Engine;
use super::body::{Body, Verdict};
use super::deliver::Ended;
use super::setback::{KeyLeft, Setback, escaped, not_begun, not_claimed, refuse_unprovable};
use crate::clock::monotonic;
use crate::handler::HandlerMeta;
use crate::key::Key;
use crate::store::{Claimed, CommitError, NewKey, Statements, Store, in_place};
use crate::telemetry;

/// A connection with an open transaction, away from its lease. Dropped before it is taken back, it rolls back, and goes out
/// of use or comes clean.
pub(crate) struct Lent<S: Store> {
    conn: Option<PoolConnection<S>>,
}

impl<S: Store> Lent<S> {
    pub(super) fn new(conn: PoolConnection<S>) -> Self {
        Self { conn: Some(conn) }
    }

    pub(super) fn into_inner(mut self) -> Option<PoolConnection<S>> {
        self.conn.take()
    }
}

impl<S: Store> Drop for Lent<S> {
    fn drop(&mut self) {
        if let Some(mut conn) = self.conn.take() {
            in_place::let_go::<S>(&mut conn);
            S::abandon(conn);
        }
    }
}

impl<S: Store> Deref for Lent<S> {
    type Target = S::Connection;

    #[allow(clippy::expect_used, reason = "only `into_inner` and `drop` take it, and they take the whole")]
    fn deref(&self) -> &S::Connection {
        self.conn.as_ref().expect("it holds its connection until it ends")
    }
}

impl<S: Store> DerefMut for Lent<S> {
    #[allow(clippy::expect_used, reason = "only `into_inner` and `drop` take it, and they take the whole")]
    fn deref_mut(&mut self) -> &mut S::Connection {
        self.conn.as_mut().expect("it holds its connection until it ends")
    }
}

impl<S: Store> Engine<S> {
    /// One run: one connection, one transaction, with a key or without.
    pub(super) async fn attempt_lent(
        &self,
        meta: &'static HandlerMeta,
        key: Option<&Key>,
        body: &mut dyn Body<S>,
    ) -> Result<Ended, Setback> {
        let inner = &*self.inner;
        let new = key.map(|key| self.new_key(meta, key));
        let mut lease = inner.connections.take().await.map_err(Setback::give_up)?;
        let mut lent = lease.lend();
        let begin = if new.is_some() { &inner.statements.begin } else { &inner.statements.begin_unkeyed };
        in_place::begin::<S>(&mut lent, begin).await.map_err(not_begun::<S>)?;

        if let (Some(key), Some(new)) = (key, new) {
            let begun = telemetry::Timer::start();
            let claimed = S::claim(&mut lent, &inner.statements, new).await;
            telemetry::claimed(begun);
            let claimed = match claimed {
                Ok(Claimed::New { clock: Some(clock) }) => refuse_unprovable(meta, key, clock),
                Ok(Claimed::New { clock: None }) => Ok(()),
                Ok(Claimed::Taken) => {
                    let found = S::find(&mut lent, &inner.statements, new).await.map_err(not_claimed::<S>)?;
                    in_place::let_go::<S>(&mut lent);
                    lease.take_back(lent);
                    lease.end();
                    return self.duplicate(meta, found, new, body);
                }
                Err(error) => Err(not_claimed::<S>(error)),
            };
            if let Err(setback) = claimed {
                if S::rollback_in_place(&mut lent).await {
                    lease.take_back(lent);
                    lease.end();
                }
                return Err(setback);
            }
        }

        let started = monotonic();
        let (back, verdict) = body.run_lent(lent).await;
        let Some(mut lent) = back else {
            return Err(match (verdict, new) {
                (Verdict::Done { .. }, Some(new)) => escaped(self.key_left(new).await, None),
                (Verdict::Done { .. }, None) => escaped(KeyLeft::None, None),
                (verdict, _) => self.setback(meta, verdict, started),
            });
        };
        if let Verdict::Done { result } = verdict {
            let committed = store_and_commit::<S>(&mut lent, &inner.statements, new, result).await;
            in_place::let_go::<S>(&mut lent);
            lease.take_back(lent);
            return self.after_commit(meta, lease, committed, new, body).await;
        }
        let is_clean = S::rollback_in_place(&mut lent).await;
        let left = match new {
            Some(new) => {
                S::find(&mut lent, &inner.statements, new).await.map(|row| row.map(|row| row.claim == new.claim))
            }
            None => Ok(None),
        };
        match left {
            Ok(Some(true)) => return Err(escaped(KeyLeft::Stored, None)),
            Ok(_) if is_clean => {
                lease.take_back(lent);
                lease.end();
            }
            _ => {}
        }
        Err(self.setback(meta, verdict, started))
    }
}

async fn store_and_commit<S: Store>(
    conn: &mut S::Connection,
    statements: &Statements,
    new: Option<NewKey<'_>>,
    result: Option<Vec<u8>>,
) -> Result<(), CommitError> {
    if let (Some(result), Some(new)) = (result, new)
        && let Err(error) = S::store_result(conn, statements, new, &result).await
    {
        S::rollback_in_place(conn).await;
        return Err(error);
    }
    S::commit_in_place(conn).await
}
