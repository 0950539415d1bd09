//! Every span, event and metric, with its fields. Keys appear at debug level only: they can be personal data.

#[cfg(feature = "metrics")]
#[path = "telemetry/metered.rs"]
mod meter;
#[cfg(not(feature = "metrics"))]
#[path = "telemetry/unmetered.rs"]
mod meter;

use std::time::Duration;

use tracing::{Level, Span, debug, error, info, span, warn};

use crate::engine::{Ended, Stop};
use crate::error::{Error, ErrorKind};
use crate::handler::HandlerMeta;
use crate::key::Key;
use crate::purge::{Exposed, Pass, Stopped};
use crate::store::Store;

pub(crate) use meter::{Timer, claimed, duplicate};

/// The metrics. `docs/telemetry.md` has their labels and units.
#[allow(dead_code, reason = "without the feature `metrics` nobody asks for them")]
mod names {
    pub(super) const OUTCOMES: &str = "idem_outcomes_total";
    pub(super) const CLAIM: &str = "idem_claim_seconds";
    pub(super) const DUPLICATE_AGE: &str = "idem_duplicate_age_seconds";
    pub(super) const PURGED: &str = "idem_purged_total";
    pub(super) const PASS: &str = "idem_purge_pass_seconds";
    pub(super) const LAG: &str = "idem_purge_lag_seconds";
    pub(super) const ORPHANS: &str = "idem_orphans";
    pub(super) const HOLDS: &str = "idem_holds";
    pub(super) const SETTLED: &str = "idem_settled_total";
    pub(super) const CONSUMER_LAG: &str = "idem_consumer_lag";
    pub(super) const CONSUMER_LAG_AGE: &str = "idem_consumer_lag_age_seconds";
}

/// One delivery, from taking a connection, if its handler has one, to its end.
pub(crate) fn delivery<S: Store>(meta: &HandlerMeta) -> Span {
    span!(target: "idem", Level::INFO, "idem.delivery", handler = meta.name, store = S::NAME)
}

/// Many deliveries in one transaction. Those of them that fail have a span of their own.
pub(crate) fn batch<S: Store>(meta: &HandlerMeta, messages: usize) -> Span {
    span!(target: "idem", Level::INFO, "idem.batch", handler = meta.name, store = S::NAME, messages)
}

/// How it ended. What needs no human is for debugging; what needs one is loud.
pub(crate) fn ended(meta: &'static HandlerMeta, key: Option<&Key>, ended: &Result<Ended, Stop>) {
    let (handler, key) = (meta.name, key.map(Key::as_str));
    meter::outcome(handler, outcome(ended));
    match ended {
        Ok(ended) => debug!(target: "idem", handler, key, outcome = ended.name(), "delivery ended"),
        Err(Stop::Handler) => debug!(target: "idem", handler, key, outcome = "failed", "delivery ended"),
        Err(Stop::Engine(error)) => {
            debug!(target: "idem", handler, key, outcome = ?error.kind(), %error, "delivery ended");
            complain(handler, error);
        }
    };
}

/// A delivery that came no further than its key.
pub(crate) fn refused(meta: &'static HandlerMeta, error: &Error) {
    meter::outcome(meta.name, kind_name(error.kind()));
    complain(meta.name, error);
}

fn outcome(ended: &Result<Ended, Stop>) -> &'static str {
    match ended {
        Ok(ended) => ended.name(),
        Err(Stop::Handler) => "failed",
        Err(Stop::Engine(error)) => kind_name(error.kind()),
    }
}

/// As its `Debug` form, without an allocation.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidKey => "InvalidKey",
        ErrorKind::Busy => "Busy",
        ErrorKind::Contention => "Contention",
        ErrorKind::Aborted => "Aborted",
        ErrorKind::Escaped => "Escaped",
        ErrorKind::Panicked => "Panicked",
        ErrorKind::Lost => "Lost",
        ErrorKind::Commit => "Commit",
        ErrorKind::CommitUnknown => "CommitUnknown",
        ErrorKind::Mismatch => "Mismatch",
        ErrorKind::Expired => "Expired",
        ErrorKind::Replay => "Replay",
        ErrorKind::Unavailable => "Unavailable",
        ErrorKind::ReadOnly => "ReadOnly",
        ErrorKind::Schema => "Schema",
        ErrorKind::Registry => "Registry",
        ErrorKind::Database => "Database",
        ErrorKind::Malformed => "Malformed",
        ErrorKind::BrokerUnavailable => "BrokerUnavailable",
        ErrorKind::BrokerRefused => "BrokerRefused",
    }
}

fn complain(handler: &str, failure: &Error) {
    let kind = failure.kind();
    match kind {
        ErrorKind::Escaped => error!(
            target: "idem", handler, ?kind,
            "the handler ended its own transaction; part of its work may be stored on its own"
        ),
        ErrorKind::Busy | ErrorKind::Contention | ErrorKind::Lost => {}
        _ => warn!(target: "idem", handler, ?kind, "the delivery was not applied"),
    }
}

/// How an at-most-once handler lost its event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loss {
    Failed,
    Panicked,
    CutOff,
}

/// No redelivery makes good for it, so somebody must be told.
pub(crate) fn lost(meta: &HandlerMeta, cause: Loss) {
    warn!(
        target: "idem", handler = meta.name, loss = meta.semantics.loss(), ?cause,
        "the event is lost: its delivery was acknowledged before the handler ran, and the handler did not get through"
    );
}

/// A transaction that met contention is run once more.
pub(crate) fn running_again(meta: &HandlerMeta, run: u32, stop: &Stop) {
    let kind = match stop {
        Stop::Handler => None,
        Stop::Engine(error) => Some(error.kind()),
    };
    debug!(target: "idem", handler = meta.name, run, ?kind, "running the transaction again");
}

/// The likely reason why a handler took so long to fail.
pub(crate) fn second_connection(meta: &HandlerMeta, waited: Duration) {
    warn!(
        target: "idem", handler = meta.name, ?waited,
        "the handler failed after waiting as long as the pool does, while no connection was free: if it takes a second \
         connection from the pool, let it use the transaction that it is given"
    );
}

/// A key expression that is another one than before, under the same name.
pub(crate) fn key_changed(meta: &HandlerMeta, was: &str, is: &str) {
    error!(
        target: "idem", handler = meta.name, was, is,
        "the key of this handler is another one than before: every stored key is forgotten, and redelivered events count \
         as new; if that is not meant, restore the key, or give the handler a new name"
    );
}

/// A retention that is shorter than before.
pub(crate) fn retention_shortened(meta: &HandlerMeta, was_secs: i64, secs: i64) {
    warn!(
        target: "idem", handler = meta.name, was_secs, secs,
        "the retention of this handler is shorter than before: the next pass of the purge deletes keys that were safe"
    );
}

/// The handlers could not be written down, since nothing can.
pub(crate) fn not_recorded(error: &sqlx::Error) {
    warn!(
        target: "idem", %error,
        "the database is read-only: the handlers were not written down, and no delivery will be applied"
    );
}

/// How many keys a shorter retention gives to the purge, before it takes them.
pub(crate) fn exposed(handler: &str, exposed: &Exposed) {
    warn!(
        target: "idem", handler, was = ?exposed.was, is = ?exposed.is, keys = exposed.keys, goes_in = ?exposed.goes_in,
        "the retention of this handler is shorter than before, and these keys go that would have stayed"
    );
}

/// One pass of the purge.
pub(crate) fn pass<S: Store>() -> Span {
    span!(target: "idem", Level::INFO, "idem.purge", store = S::NAME)
}

/// A batch of the purge deleted so many keys.
pub(crate) fn batch_ended(handler: &str, deleted: u64) {
    meter::purged(handler, deleted);
}

/// So many holds are in force.
pub(crate) fn holds(count: usize) {
    meter::holds(u32::try_from(count).unwrap_or(u32::MAX));
}

/// For how long the oldest key that should be gone has been there.
pub(crate) fn lag(handler: &str, lag: Duration) {
    meter::lag(handler, lag);
}

/// How a pass ended.
pub(crate) fn pass_ended(pass: &Pass, took: Duration) {
    if pass.stopped.is_none() {
        meter::passed(took);
        meter::orphans(u32::try_from(pass.orphans().count()).unwrap_or(u32::MAX));
    }
    match &pass.stopped {
        None => {
            let (purged, orphans) = (pass.purged(), pass.orphans().count());
            debug!(target: "idem", purged, orphans, ?took, "the purge made a pass");
        }
        Some(Stopped::Held(hold)) => {
            let purged = pass.purged();
            info!(
                target: "idem", purged, hold = hold.id, expires_in = ?hold.expires_in,
                "the purge is held, and the table of keys grows"
            );
        }
        Some(stopped) => debug!(target: "idem", purged = pass.purged(), ?stopped, "the purge ended before its end"),
    }
    for orphan in pass.orphans() {
        warn!(
            target: "idem", handler = orphan.handler, purged = orphan.purged,
            "this handler is not in the program any more, or its name is another; its keys go by its last retention"
        );
    }
    for (handler, error) in &pass.failures {
        warn!(target: "idem", handler, kind = ?error.kind(), %error, "the keys of this handler could not be purged");
    }
}

/// A pass that failed as a whole. Three in a row need a human.
pub(crate) fn pass_failed(failures: u32, error: &Error) {
    let kind = error.kind();
    if failures < 3 {
        warn!(target: "idem", failures, ?kind, %error, "a pass of the purge failed; the next one comes by itself");
    } else {
        error!(
            target: "idem", failures, ?kind, %error,
            "the purge keeps failing: the table of keys grows; nothing is lost"
        );
    }
}

/// The purge waits after a start.
pub(crate) fn waiting(waited: Duration, longest: Duration) {
    debug!(target: "idem", ?waited, ?longest, "the purge waits until the consumers have caught up");
}

mod consumer;
pub(crate) use consumer::*;

#[cfg(feature = "axum")]
mod http;
#[cfg(feature = "axum")]
pub(crate) use http::*;

#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
pub(crate) use redis::*;
