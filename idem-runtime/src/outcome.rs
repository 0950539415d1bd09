//! What became of a delivery.

use std::time::{Duration, SystemTime};

use crate::error::Failure;

/// The event's effect is there: this delivery brought it about, or an earlier one had.
///
/// Both are a success, and both are acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome<T> {
    /// The handler ran, and its effect and the key are committed. Holds what the handler returned. A naturally idempotent
    /// handler has committed its effect alone, perhaps again; an at-most-once handler has returned `Ok`, and no more is
    /// known.
    Applied(T),
    /// The key was already committed; the handler did not run.
    Duplicate(Seen<T>),
}

impl<T> Outcome<T> {
    /// Whether this delivery applied the event.
    #[must_use]
    pub const fn is_applied(&self) -> bool {
        matches!(self, Self::Applied(_))
    }

    /// Whether an earlier delivery had applied the event.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    /// The handler's result: its own when it ran, the stored one of the first run under `replay`, else `None`.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Applied(value) => Some(value),
            Self::Duplicate(seen) => seen.result,
        }
    }
}

/// What is known of the delivery that applied a duplicate's event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen<T> {
    /// When the event was claimed, by the database's clock.
    pub claimed_at: SystemTime,
    /// How long ago that was, by the database's clock.
    pub age: Duration,
    /// What the handler returned then, under `replay`; `None` without it, or when the key is older than the `replay`.
    pub result: Option<T>,
}

/// What to tell the broker, or the sender of a webhook, about a delivery.
///
/// ```
/// use idem_runtime::{Failure, Outcome, Settle};
///
/// let handled: Result<Outcome<()>, Failure<std::io::Error>> = Ok(Outcome::Applied(()));
/// assert_eq!(Settle::of(&handled), Settle::Ack);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settle {
    /// Done: do not deliver it again.
    Ack,
    /// Deliver it again, later; after too many attempts dead-letter it.
    Retry,
    /// Park it for a human: delivering it again cannot help.
    DeadLetter,
}

impl Settle {
    /// How to settle a delivery that ended so: applied and duplicate are acknowledged, a failure never is, unless its
    /// handler is at most once.
    #[must_use]
    pub fn of<T, E>(handled: &Result<Outcome<T>, Failure<E>>) -> Self {
        match handled {
            Ok(_) => Self::Ack,
            Err(failure) => failure.settle(),
        }
    }
}
