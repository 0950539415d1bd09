//! How a handler gets at the transaction of its request.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::super::problem::Problem;
use crate::engine::Lent;
use crate::store::Store;
use crate::telemetry;

/// The place in the request where its transaction lies while nobody has it.
pub(super) struct Slot<S: Store>(Arc<Mutex<Content<S>>>);

struct Content<S: Store> {
    lent: Option<Lent<S>>,
    /// Whether a handler has ever taken it.
    was_taken: bool,
    /// The request is over: whoever still has the transaction may not put it back.
    is_over: bool,
}

impl<S: Store> Slot<S> {
    pub(super) fn new(lent: Lent<S>) -> Self {
        Self(Arc::new(Mutex::new(Content { lent: Some(lent), was_taken: false, is_over: false })))
    }

    /// Ends the request. Gives the transaction, unless the handler has kept it, and whether the handler ever took it.
    pub(super) fn close(&self) -> (Option<Lent<S>>, bool) {
        self.with(|content| {
            content.is_over = true;
            (content.lent.take(), content.was_taken)
        })
    }

    fn take(&self) -> Option<Lent<S>> {
        self.with(|content| {
            content.was_taken = true;
            content.lent.take()
        })
    }

    /// Takes the transaction back, or gives it up, which rolls it back.
    fn put_back(&self, lent: Lent<S>) {
        let late = self.with(|content| match content.is_over {
            true => Some(lent),
            false => content.lent.replace(lent),
        });
        drop(late);
    }

    fn with<T>(&self, does: impl FnOnce(&mut Content<S>) -> T) -> T {
        does(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Store> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The open transaction of a request, as an argument of its handler: `mut tx: KeyedTx<Postgres>`, then
/// `query.execute(&mut *tx)`. It is the database's connection, inside the transaction that holds the key; what is written
/// through it is committed together with the key and the response, or not at all.
///
/// Dropping it gives it back. A handler that keeps it beyond its response, in a task of its own, fails, and nothing is
/// stored.
pub struct KeyedTx<S: Store> {
    lent: Option<Lent<S>>,
    slot: Slot<S>,
}

impl<S: Store> fmt::Debug for KeyedTx<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedTx").field("store", &S::NAME).finish_non_exhaustive()
    }
}

impl<S: Store> Drop for KeyedTx<S> {
    fn drop(&mut self) {
        if let Some(lent) = self.lent.take() {
            self.slot.put_back(lent);
        }
    }
}

impl<S: Store> Deref for KeyedTx<S> {
    type Target = S::Connection;

    #[allow(clippy::expect_used, reason = "only `drop` takes it")]
    fn deref(&self) -> &S::Connection {
        self.lent.as_ref().expect("it holds its connection until it is dropped")
    }
}

impl<S: Store> DerefMut for KeyedTx<S> {
    #[allow(clippy::expect_used, reason = "only `drop` takes it")]
    fn deref_mut(&mut self) -> &mut S::Connection {
        self.lent.as_mut().expect("it holds its connection until it is dropped")
    }
}

impl<S: Store, T: Sync> FromRequestParts<T> for KeyedTx<S> {
    type Rejection = KeyedTxRejection;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Self, KeyedTxRejection> {
        let slot = parts.extensions.get::<Slot<S>>().ok_or(KeyedTxRejection::NoLayer)?.clone();
        match slot.take() {
            Some(lent) => Ok(Self { lent: Some(lent), slot }),
            None => Err(KeyedTxRejection::Taken),
        }
    }
}

/// Why a handler has no transaction: a mistake in the program, answered 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyedTxRejection {
    /// There is no [`KeyedLayer`](super::KeyedLayer) around the handler, or it is one of another database, or the request's
    /// method is none of its route's.
    #[error("no keyed layer of this database around the handler, for this method")]
    NoLayer,
    /// The handler takes it twice.
    #[error("the request's transaction is taken already")]
    Taken,
}

impl IntoResponse for KeyedTxRejection {
    fn into_response(self) -> Response {
        telemetry::no_transaction(&self);
        Problem::Failed.into_response()
    }
}
