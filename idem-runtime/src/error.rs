//! What can go wrong, with the answer a consumer needs: is anything stored, and how to settle the delivery.

use std::error::Error as StdError;
use std::fmt;

use crate::handler::{HandlerMeta, Semantics};
use crate::key::Key;
use crate::outcome::Settle;

/// Why a delivery did not end in an [`Outcome`](crate::Outcome): the handler's own error, or the engine's.
///
/// [`settle`](Self::settle) says what to do with the delivery: never acknowledge it, unless its handler is at most once and
/// it was acknowledged before.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// The handler returned an error. Its transaction was rolled back: no key, no effect. (Two cases go unnoticed: a handler
    /// that commits by hand and then loses the connection, and one without a key that commits by hand and then fails.) An
    /// at-most-once handler has no such transaction: the event is lost, but for what the handler had done by then.
    Handler(Failed<E>),
    /// The engine could not apply the event, or could not prove that it did.
    Engine(Error),
}

impl<E> Failure<E> {
    /// How to settle the delivery. A handler's own error is retried; whoever consumes decides after how many attempts
    /// it is dead-lettered. The delivery of an at-most-once handler was acknowledged before it ran, and stays so.
    #[must_use]
    pub fn settle(&self) -> Settle {
        match self {
            Self::Handler(failed) => failed.settle(),
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
    /// The event's key as it stands in the table; `None` for a handler without a key.
    pub key: Option<Key>,
    /// What is lost with it; only after an at-most-once handler.
    loss: Option<&'static str>,
}

impl<E> Failed<E> {
    pub(crate) fn new(error: E, meta: &'static HandlerMeta, key: Option<Key>) -> Self {
        Self { error, handler: meta.name, key, loss: meta.semantics.loss() }
    }

    fn settle(&self) -> Settle {
        if self.loss.is_some() { Settle::Ack } else { Settle::Retry }
    }
}

impl<E> fmt::Display for Failed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handler `{}`", self.handler)?;
        if let Some(key) = &self.key {
            write!(f, ", key `{key}`")?;
        }
        f.write_str(": the handler returned an error; ")?;
        match self.loss {
            Some(loss) => write!(f, "{LOST}: {loss}"),
            None => f.write_str("its transaction was rolled back, nothing is stored, and a redelivery runs it again"),
        }
    }
}

/// What becomes of an event whose at-most-once handler fails; the declared loss follows.
const LOST: &str = "its delivery was acknowledged before it ran, so no redelivery comes and the event is lost";

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
    meta: Option<&'static HandlerMeta>,
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
    /// An at-most-once handler panicked. Its delivery was acknowledged before it ran, so the event is lost.
    Lost,
    /// The database refused to commit, for instance because of a deferred constraint.
    Commit,
    /// The connection was lost during the commit, and the database could not be asked what became of it: it could not be
    /// reached, or the handler has no key that could be looked up.
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
    /// The message's body is not what its handler takes.
    Malformed,
    /// The broker cannot be reached.
    BrokerUnavailable,
    /// The broker, or what a consumer is told about it, must be changed by somebody: a setting that would acknowledge early,
    /// a queue that is not there, a missing permission.
    BrokerRefused,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, meta: None, key: None, detail: None, source: None }))
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
        self.0.meta = Some(meta);
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
        self.0.meta.map(|meta| meta.name)
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

    /// What happened, without what is stored and what to do about it.
    pub(crate) fn what(&self) -> String {
        let what = self.0.text().0;
        self.0.detail.as_ref().map_or_else(|| what.to_owned(), |detail| format!("{what}: {detail}"))
    }
}

impl ErrorKind {
    /// How to settle a delivery that ended in this kind of error.
    #[must_use]
    pub const fn settle(self) -> Settle {
        match self {
            Self::InvalidKey | Self::Mismatch | Self::Expired | Self::Replay | Self::Malformed => Settle::DeadLetter,
            Self::Lost => Settle::Ack,
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
            Self::Lost => ("an at-most-once handler panicked", LOST),
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
            Self::Malformed => (
                "the message cannot be decoded",
                "nothing was stored; dead-letter it, and compare what the producer sends with the handler's message type",
            ),
            Self::BrokerUnavailable => (
                "the broker cannot be reached",
                "nothing was received and nothing is lost; start again once it answers",
            ),
            Self::BrokerRefused => ("the consumer cannot work with the broker as it is set up", "nothing was received"),
        }
    }
}

impl Inner {
    /// The kind's text, but for what is not so without a key.
    fn text(&self) -> (&'static str, &'static str) {
        let is_natural = self.meta.is_some_and(|meta| matches!(meta.semantics, Semantics::NaturallyIdempotent { .. }));
        match self.kind {
            ErrorKind::Busy if is_natural => {
                ("another writer has the database", "nothing was stored; retry the delivery later")
            }
            ErrorKind::CommitUnknown if is_natural => (
                "the connection was lost during the commit, and without a key nobody can be asked what became of it",
                "the effect is stored or it is not; retry the delivery, applying it again changes nothing",
            ),
            kind => kind.text(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(handler) = self.handler() {
            write!(f, "handler `{handler}`")?;
            if let Some(key) = &self.0.key {
                write!(f, ", key `{key}`")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}; {}", self.what(), self.0.text().1)?;
        match self.0.meta.and_then(|meta| meta.semantics.loss()) {
            Some(loss) => write!(f, ": {loss}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("handler", &self.handler())
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
