//! What a handler is, to the engine, to the registry and to whoever consumes for it.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::const_text::ConstText;
use crate::engine::{Attempt, Engine, Prepared, SliceReturned};
use crate::error::Failure;
use crate::key::{Key, KeyError};
use crate::outcome::Outcome;
use crate::policy::{Policy, Window, refuse_short_provider_window, refuse_short_retention};
use crate::retention::Retention;
use crate::store::Store;

/// All that is known of a handler without running it. Collected in the [`Registry`](crate::Registry) of every program
/// that links the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerMeta {
    /// The persisted identity, which scopes the handler's keys: 1 to 128 of `A-Za-z0-9._:/-`.
    pub name: &'static str,
    /// Whether the name was written with `name = "…"`. If not, it is the function's own, and a rename of the function
    /// forgets every key.
    pub name_is_pinned: bool,
    /// Where the handler stands in the source.
    pub place: Place,
    /// The first line of the handler's documentation; empty without one.
    pub summary: &'static str,
    /// The message type, as written.
    pub message: &'static str,
    /// What guards the effect.
    pub semantics: Semantics,
    /// The key expressions, as written; empty without a key.
    pub key: &'static [&'static str],
    /// How long keys are kept; `None` without a key.
    pub retention: Option<Retention>,
    /// The constant that both the retention and the redelivery come from, as written; `None` if they stand with the
    /// handler.
    pub policy: Option<&'static str>,
    /// The declared ways in which the event can come again, each with its window. They add up.
    pub redelivery: &'static [Window],
    /// The expressions that `fingerprint(…)` compares, as written.
    pub fingerprint: &'static [&'static str],
    /// The expression of the event's own time, as written.
    pub occurred_at: Option<&'static str>,
    /// Whether the result is stored and handed to duplicates.
    pub replay: bool,
    /// The declared effects outside the database.
    pub external: &'static [External],
    /// The refusals that were overridden, with their reasons.
    pub allowed: &'static [Allowed],
}

impl HandlerMeta {
    /// A handler with nothing but a name and a place; the attribute fills in the rest.
    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn new(name: &'static str, place: Place, semantics: Semantics) -> Self {
        Self {
            name,
            name_is_pinned: false,
            place,
            summary: "",
            message: "",
            semantics,
            key: &[],
            retention: None,
            policy: None,
            redelivery: &[],
            fingerprint: &[],
            occurred_at: None,
            replay: false,
            external: &[],
            allowed: &[],
        }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn pinned(self) -> Self {
        Self { name_is_pinned: true, ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn describe(self, summary: &'static str, message: &'static str) -> Self {
        Self { summary, message, ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn key(self, key: &'static [&'static str], retention: Retention) -> Self {
        Self { key, retention: Some(retention), ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn policy(self, key: &'static [&'static str], name: &'static str, policy: &'static Policy) -> Self {
        let (retention, redelivery) = (Some(policy.keeps()), policy.windows());
        Self { key, retention, redelivery, policy: Some(name), ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn redelivery(self, redelivery: &'static [Window]) -> Self {
        Self { redelivery, ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn external(self, external: &'static [External]) -> Self {
        Self { external, ..self }
    }

    /// Compares lengths that the macro cannot see, since they are constants.
    #[doc(hidden)] // Not public API: called by generated code.
    #[track_caller]
    pub const fn compare_retention(&self) {
        if let Some(retention) = self.retention {
            let whose = ConstText::new().push("handler `").push(self.name).push("`: ");
            refuse_short_retention(whose, retention, self.redelivery);
        }
    }

    /// Compares the providers' windows with the redelivery, where the macro could not.
    #[doc(hidden)] // Not public API: called by generated code.
    #[track_caller]
    pub const fn compare_providers(&self) {
        let mut index = 0;
        while index < self.external.len() {
            let External { provider, window, lookup, .. } = self.external[index];
            if let (Some(window), None) = (window, lookup) {
                refuse_short_provider_window(self.name, provider, window, self.redelivery);
            }
            index += 1;
        }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn allowed(self, allowed: &'static [Allowed]) -> Self {
        Self { allowed, ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn fingerprint(self, fingerprint: &'static [&'static str]) -> Self {
        Self { fingerprint, ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn occurred_at(self, occurred_at: &'static str) -> Self {
        Self { occurred_at: Some(occurred_at), ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn replay(self) -> Self {
        Self { replay: true, ..self }
    }
}

/// Where a handler stands in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The module path and the function's name.
    pub function: &'static str,
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
}

impl Place {
    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn new(function: &'static str, file: &'static str, line: u32) -> Self {
        Self { function, file, line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}:{}", self.function, self.file, self.line)
    }
}

/// What keeps a handler's effect from happening twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Semantics {
    /// A key, written in the transaction of the effect.
    Idempotent,
    /// Nothing: the delivery is acknowledged before the handler runs, so the effect can be lost but not doubled.
    AtMostOnce {
        /// Why that is right here.
        reason: &'static str,
        /// What is lost when the handler fails.
        loss: &'static str,
    },
    /// The effect itself: applying it again changes nothing.
    NaturallyIdempotent {
        /// Why that is so.
        reason: &'static str,
    },
}

impl Semantics {
    /// As the attribute is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Idempotent => "idempotent",
            Self::AtMostOnce { .. } => "at_most_once",
            Self::NaturallyIdempotent { .. } => "naturally_idempotent",
        }
    }

    /// What is lost when the handler fails; `None` where it runs again.
    pub(crate) const fn loss(self) -> Option<&'static str> {
        match self {
            Self::AtMostOnce { loss, .. } => Some(loss),
            Self::Idempotent | Self::NaturallyIdempotent { .. } => None,
        }
    }
}

/// An effect outside the database, which no rollback undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct External {
    /// Who is called.
    pub provider: &'static str,
    /// What keeps the effect from happening twice.
    pub guard: Guard,
    /// How long the provider itself recognises a repeated request.
    pub window: Option<Retention>,
    /// How the provider is asked, before each call, whether the effect has happened.
    pub lookup: Option<&'static str>,
    /// What can still go wrong, in words.
    pub risk: &'static str,
}

impl External {
    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn new(provider: &'static str, guard: Guard, risk: &'static str) -> Self {
        Self { provider, guard, window: None, lookup: None, risk }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn window(self, window: Retention) -> Self {
        Self { window: Some(window), ..self }
    }

    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn lookup(self, how: &'static str) -> Self {
        Self { lookup: Some(how), ..self }
    }
}

/// What keeps an effect outside the database from happening twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// The provider is given an idempotency key, and recognises it for a time.
    ProviderKey,
    /// The provider is asked first whether the effect has happened.
    Lookup,
    /// The effect is written down in the transaction, and sent once that is committed; the receiver tells duplicates.
    Outbox,
    /// Nothing: the effect happens again with every redelivery.
    None,
}

/// A refusal of the key that was overridden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowed {
    /// Which refusal.
    pub category: &'static str,
    /// Why it does not hold here.
    pub reason: &'static str,
}

impl Allowed {
    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn new(category: &'static str, reason: &'static str) -> Self {
        Self { category, reason }
    }
}

/// A handler as a type, of the same name as the function, so that a consumer can be told which handlers it runs.
///
/// Implemented by the attribute for handlers without type parameters that take a borrowed message and at most one
/// borrowed state. All other handlers are called as functions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler that a consumer can run on this store",
    label = "not a handler of this store",
    note = "a handler is an `async fn` under `#[idempotent]`, `#[at_most_once]` or `#[naturally_idempotent]`",
    note = "consumers run those without type parameters that take a borrowed message and at most one borrowed state",
    note = "every other annotated function can still be called: `handler(&engine, &msg, …).await`"
)]
pub trait Handler<S: Store> {
    /// The message type.
    type Message: ?Sized + Sync;
    /// The state parameter's type; `()` without one.
    type State: ?Sized + Sync;
    /// What the handler returns: a `Result`.
    type Returned: HandlerResult;

    /// What the registry knows of it.
    const META: &'static HandlerMeta;

    /// The key of a message's event; `None` for a handler without a key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when a part of the key is missing.
    fn key(message: &Self::Message, state: &Self::State) -> Result<Option<Key>, KeyError>;

    /// Applies the message's event, as [`META.semantics`](HandlerMeta::semantics) says: once with a key, at least once if
    /// that changes nothing, or at most once. Before an at-most-once handler, the delivery is acknowledged.
    ///
    /// # Errors
    ///
    /// As [`Failure`] says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls back: no key, no effect. Dropped while the commit is under way, both are stored or
    /// neither is. The connection is closed or cleaned, never reused as it is.
    ///
    /// An at-most-once handler has nothing that rolls back: dropped after it began, the rest of its effect is lost.
    fn call<'a>(
        engine: &'a Engine<S>,
        message: &'a Self::Message,
        state: &'a Self::State,
    ) -> BoxFuture<'a, Handled<Self::Returned>>;

    /// Makes the key of a delivery, and puts the body behind it; `None` where a batch cannot have it.
    #[doc(hidden)] // Not public API: called by the engine.
    fn prepare<'a>(message: &'a Self::Message, state: &'a Self::State) -> Option<Prepared<'a, S, Self::Returned>> {
        let _ = (message, state);
        None
    }

    /// Whether there is a body for many messages.
    #[doc(hidden)] // Not public API: read by the engine.
    const APPLIES_ALL: bool = false;

    /// Runs the body for many messages, if there is one.
    #[doc(hidden)] // Not public API: called by the engine.
    fn apply_all<'c, 't>(
        attempt: Attempt<'c, 'c, 't, S>,
        messages: &'t [&'t Self::Message],
        state: &'t Self::State,
    ) -> Option<BoxFuture<'t, SliceReturned<Self::Returned>>> {
        let _ = (attempt, messages, state);
        None
    }
}

/// What a handler may return: `Result<T, E>`, under whatever alias.
#[diagnostic::on_unimplemented(
    message = "a handler must be able to fail, and `{Self}` cannot say whether it did",
    label = "not a `Result`",
    note = "return `Result<(), E>`: `Ok` commits key and effect, `Err` rolls both back and has the delivery retried"
)]
pub trait HandlerResult {
    /// What success returns.
    type Ok;
    /// What failure returns.
    type Err;

    #[doc(hidden)] // Not public API: called by the engine.
    fn into_result(self) -> Result<Self::Ok, Self::Err>;
}

impl<T, E> HandlerResult for Result<T, E> {
    type Ok = T;
    type Err = E;

    fn into_result(self) -> Self {
        self
    }
}

/// What calling a handler gives: `Handled<Result<T, E>>` is `Result<Outcome<T>, Failure<E>>`.
pub type Handled<R> = Result<Outcome<<R as HandlerResult>::Ok>, Failure<<R as HandlerResult>::Err>>;
