//! What can go wrong, with the answer a consumer needs: is anything stored, and how to settle the delivery.

use std::error::Error as StdError;
use std::fmt;

use crate::handler::HandlerMeta;
use crate::key::Key;
use crate::outcome::Settle;

/// Why a delivery did not end in an [`Outcome`](crate::Outcome): the handler's own error, or the engine's.
///
/// In either case the delivery must not be acknowledged; [`settle`](Self::settle) says what to do with it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// The handler returned an error. Its transaction was rolled back: no key, no effect. (A handler that commits by hand
    /// and then loses the connection is the one case that nobody finds out.)
    Handler(Failed<E>),
    /// The engine could not apply the event, or could not prove that it did.
    Engine(Error),
}

impl<E> Failure<E> {
    /// How to settle the delivery. A handler's own error is retried; whoever consumes decides after how many attempts
    /// it is dead-lettered.
    #[must_use]
    pub fn settle(&self) -> Settle {
        match self {
            Self::Handler(_) => Settle::Retry,
            Self::Engine(error) => error.settle(),
        }
    }

    /// The engine's error, if it is one.
    #[must_use]
    pub fn engine(&self) -> Option<&Error> {
        match self {
            Self::Handler(_) => None,
            Self::Engine(error) => Some(error),
        }
    }

    /// The kind of the engine's error, if it is one.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        self.engine().map(Error::kind)
    }
}

impl<E> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(failed) => failed.fmt(f),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl<E: StdError + 'static> StdError for Failure<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Handler(failed) => failed.source(),
            Self::Engine(error) => error.source(),
        }
    }
}

/// A handler's own error, and which delivery met it.
///
/// Its text names the key, which can be personal data; the handler's error is its source.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failed<E> {
    /// What the handler returned.
    pub error: E,
    /// The name of the handler.
    pub handler: &'static str,
    /// The event's key as it stands in the table.
    pub key: Key,
}

impl<E> Failed<E> {
    pub(crate) fn new(error: E, handler: &'static str, key: Key) -> Self {
        Self { error, handler, key }
    }
}

impl<E> fmt::Display for Failed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handler, key, .. } = self;
        write!(
            f,
            "handler `{handler}`, key `{key}`: the handler returned an error; its transaction was rolled back, nothing is \
             stored, and a redelivery runs it again"
        )
    }
}

impl<E: StdError + 'static> StdError for Failed<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// An error of the engine.
///
/// Its text says what happened, to which handler and key, whether anything is stored, and what to do. The text names
/// the key, which can be personal data; [`kind`](Self::kind) and [`handler`](Self::handler) do not.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    handler: Option<&'static str>,
    key: Option<String>,
    detail: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of [`Error`], one for each thing a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A part of the key is missing: empty text, no bytes, or the nil UUID.
    InvalidKey,
    /// Another delivery of the event is still being applied, and the bounded wait for it is over. On SQLite, where one
    /// transaction writes at a time: another writer has the database.
    Busy,
    /// Serialization failures or deadlocks in the engine's own statements, and the transaction may not run again. Met in
    /// a statement of the handler's, they come back as its own error.
    Contention,
    /// The handler returned `Ok`, but one of its statements had failed and the database refuses to commit.
    Aborted,
    /// The handler committed, rolled back or lost the transaction it was given.
    Escaped,
    /// The handler panicked.
    Panicked,
    /// The database refused to commit, for instance because of a deferred constraint.
    Commit,
    /// The connection was lost during the commit, and the database could not be asked what became of it.
    CommitUnknown,
    /// An event with this key was applied before, with another fingerprint.
    Mismatch,
    /// The event is older than its handler's retention, so that nobody can say whether it was applied; or it is dated so
    /// far ahead of the database's clock that its key would be purged too early.
    Expired,
    /// The stored result cannot be read as the handler's result type, or the result cannot be stored.
    Replay,
    /// No connection to the database, or it was lost before the commit.
    Unavailable,
    /// The database, or the transaction, is read-only.
    ReadOnly,
    /// The tables are missing, older or newer than this library.
    Schema,
    /// The handlers that are linked into the program contradict each other, or there are none.
    Registry,
    /// The database refused a statement of the engine's, for a reason that has no kind of its own.
    Database,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, handler: None, key: None, detail: None, source: None }))
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    pub(crate) fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn at(mut self, meta: &'static HandlerMeta, key: Option<&Key>) -> Self {
        self.0.handler = Some(meta.name);
        self.0.key = key.map(Key::to_string);
        self
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The name of the handler that the delivery was for; `None` for an error of the start.
    #[must_use]
    pub fn handler(&self) -> Option<&str> {
        self.0.handler
    }

    /// The key of the delivery's event as it stands in the table, where there is one. It can be personal data.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// How to settle the delivery.
    #[must_use]
    pub fn settle(&self) -> Settle {
        self.0.kind.settle()
    }
}

impl ErrorKind {
    /// How to settle a delivery that ended in this kind of error.
    #[must_use]
    pub const fn settle(self) -> Settle {
        match self {
            Self::InvalidKey | Self::Mismatch | Self::Expired | Self::Replay => Settle::DeadLetter,
            _ => Settle::Retry,
        }
    }

    /// What happened, then what is stored and what to do about it.
    const fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::InvalidKey => (
                "the event has no usable key",
                "nothing was stored; dead-letter it, and have the producer send its identifier",
            ),
            Self::Busy => (
                "another delivery of this event is still being applied (on SQLite: another writer has the database)",
                "nothing was stored by this one; retry it later, do not acknowledge it",
            ),
            Self::Contention => (
                "the transaction met a serialization failure or a deadlock, and may not run again",
                "it was rolled back and nothing is stored; retry the delivery",
            ),
            Self::Aborted => (
                "the handler returned Ok, but one of its statements had failed and the transaction cannot commit",
                "nothing is stored; retry the delivery, and let the handler return the error of the failed statement",
            ),
            Self::Escaped => (
                "the handler's transaction ended before the engine could commit it",
                "part of its work may be stored on its own, so compare the effect by hand; look in the handler for COMMIT, \
                 ROLLBACK, DDL on MySQL, or an ignored deadlock",
            ),
            Self::Panicked => {
                ("the handler panicked", "its transaction was rolled back, nothing is stored; retry the delivery")
            }
            Self::Commit => ("the database refused to commit", "nothing is stored; retry the delivery"),
            Self::CommitUnknown => (
                "the connection was lost during the commit, and the database could not be asked what became of it",
                "either key and effect are stored or neither is; retry the delivery, which finds out",
            ),
            Self::Mismatch => (
                "an event with this key was applied before, with another fingerprint",
                "this one was not applied; dead-letter it, and ask the producer why one key stands for two contents",
            ),
            Self::Expired => (
                "by its own time, the event cannot be proven new",
                "it was not applied; dead-letter it, and check by hand whether its effect is there",
            ),
            Self::Replay => (
                "the handler's result cannot be written or read as its type",
                "dead-letter the delivery, and mend the type's serde form",
            ),
            Self::Unavailable => {
                ("no connection to the database", "nothing was stored; retry the delivery once the database is back")
            }
            Self::ReadOnly => (
                "the database is read-only",
                "nothing was stored; connect to the primary, or give the file write permission, and retry the delivery",
            ),
            Self::Schema => (
                "the tables of idem do not fit this version of the library",
                "run `idem_runtime::migrate(&pool).await` at deployment, or apply `idem-runtime/migrations` by hand",
            ),
            Self::Registry => ("the registered handlers are unusable", "nothing was started"),
            Self::Database => {
                ("the database refused a statement of the engine's", "nothing was stored; retry the delivery")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, then) = self.0.kind.text();
        if let Some(handler) = self.0.handler {
            write!(f, "handler `{handler}`")?;
            if let Some(key) = &self.0.key {
                write!(f, ", key `{key}`")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(what)?;
        if let Some(detail) = &self.0.detail {
            write!(f, ": {detail}")?;
        }
        write!(f, "; {then}")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("handler", &self.0.handler)
            .field("key", &self.0.key)
            .field("detail", &self.0.detail)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
