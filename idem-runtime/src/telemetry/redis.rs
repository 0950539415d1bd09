//! What the consumer of a Redis stream emits beside.

use tracing::{error, warn};

/// What was delivered and never settled is not in the stream any more.
pub(crate) fn trimmed_unsettled(source: &str, entry: &str) {
    error!(
        target: "idem", broker = "redis", source, entry,
        "an entry was trimmed or deleted from the stream before it was acknowledged: unless it was applied already, its event \
         is lost; trim only what is acknowledged"
    );
}

/// What was never delivered is not in the stream any more.
pub(crate) fn trimmed_unread(source: &str, entries: u64) {
    error!(
        target: "idem", broker = "redis", source, entries,
        "entries were trimmed or deleted from the stream before the group read them: their events are lost; trim only what is \
         acknowledged"
    );
}

/// A restart of the server forgets.
pub(crate) fn not_durable(source: &str) {
    warn!(
        target: "idem", broker = "redis", source,
        "Redis writes no append-only file: its restart loses events that it had taken from the sender; set `appendonly yes`"
    );
}
