//! What consumers emit.

use std::time::Duration;

use tokio::task::JoinError;
use tracing::{debug, error, info, warn};

use super::meter;
use crate::adapter::{AdapterError, Horizon, Lag};
use crate::handler::HandlerMeta;

/// The broker's redelivery outlives what a handler declares.
pub(crate) fn long_redelivery(meta: &HandlerMeta, broker: &str, source: &str, horizon: &Horizon, declared: Duration) {
    warn!(
        target: "idem", handler = meta.name, broker, source, retention = ?meta.retention.map(crate::Retention::as_duration),
        ?declared, broker_redelivers_for = ?horizon.length, because = horizon.because,
        "the broker delivers again for longer than this handler declares or keeps its keys: an event that comes so late is \
         applied twice; lengthen `retention` and `redelivery`, or shorten the broker's"
    );
}

/// The broker's settings lose events before anybody sees them.
#[cfg(feature = "nats")]
pub(crate) fn discards_unread(broker: &str, source: &str, because: &str) {
    warn!(
        target: "idem", broker, source, because,
        "the broker may delete messages that nobody has handled yet, to make room: such an event is lost, and nobody is told"
    );
}

/// How much waits at the broker.
pub(crate) fn consumer_lag(broker: &'static str, source: &str, lag: Lag) {
    meter::consumer_lag(broker, source, lag.messages, lag.oldest);
}

/// A delivery is settled.
pub(crate) fn settled(broker: &'static str, settlement: &'static str) {
    meter::settled(broker, settlement);
    debug!(target: "idem", broker, settlement, "delivery settled");
}

/// The broker did not hear, or did not accept, what it was told.
pub(crate) fn not_settled(broker: &str, source: &str, settlement: &str, error: &AdapterError) {
    warn!(
        target: "idem", broker, source, settlement, error = error.with_causes(),
        "the broker could not be told what became of a delivery: it comes again, and is a duplicate if it was applied"
    );
}

/// A body that is no message.
pub(crate) fn malformed(meta: &HandlerMeta, broker: &str, bytes: usize) {
    warn!(
        target: "idem", handler = meta.name, broker, bytes,
        "the message cannot be decoded, and is dead-lettered; the reason is beside it"
    );
}

/// A message that nobody wants.
pub(crate) fn unrouted(broker: &str, source: &str) {
    warn!(
        target: "idem", broker, source,
        "no handler of the consumer takes this message, and it is dead-lettered; add a route, or do not send it here"
    );
}

/// An attempt failed, and another one follows.
pub(crate) fn retrying(broker: &str, attempt: u32, after: Duration, text: &str) {
    warn!(target: "idem", broker, attempt, ?after, "a delivery failed, and is tried again");
    debug!(target: "idem", broker, attempt, error = text, "why the delivery failed");
}

/// A delivery waits for a human.
pub(crate) fn dead_lettered(broker: &str, source: &str, attempt: u32) {
    error!(
        target: "idem", broker, source, attempt,
        "an event was not applied, and waits in the dead letters for a human; the reason is beside it"
    );
}

/// The connection to the broker is gone.
pub(crate) fn disconnected(broker: &str, source: &str, error: &AdapterError) {
    warn!(
        target: "idem", broker, source, error = error.with_causes(),
        "the connection to the broker ended; the consumer connects anew, and what it had not settled comes again"
    );
}

/// Connecting failed. From the fifth time on somebody should look.
pub(crate) fn not_connected(broker: &str, source: &str, failures: u32, error: &AdapterError) {
    if failures < 5 {
        warn!(target: "idem", broker, source, failures, error = error.with_causes(), "the broker cannot be reached yet");
    } else {
        error!(
            target: "idem", broker, source, failures, error = error.with_causes(),
            "the broker cannot be reached: nothing is consumed, nothing is lost, and the consumer keeps trying"
        );
    }
}

/// The broker is back.
pub(crate) fn connected_anew(broker: &str, source: &str, tries: u32) {
    info!(target: "idem", broker, source, tries, "the consumer is connected to the broker again");
}

/// The database cannot be used, so nothing is received.
pub(crate) fn paused(broker: &str, pause: Duration) {
    warn!(
        target: "idem", broker, ?pause,
        "the database cannot be used, so the consumer receives nothing for a while; nothing is lost"
    );
}

/// The grace after a stop is over.
pub(crate) fn abandoned(broker: &str, deliveries: usize) {
    warn!(
        target: "idem", broker, deliveries,
        "these deliveries did not end in time: they are rolled back and given back to the broker"
    );
}

/// A defect of this library, or of an adapter.
pub(crate) fn task_panicked(broker: &str, error: &JoinError) {
    error!(
        target: "idem", broker, %error,
        "a task of the consumer panicked; its delivery was not settled, and comes again"
    );
}
