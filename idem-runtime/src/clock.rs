//! The only place that reads a clock, and it reads only durations: instants come from the database.

use tokio::time::Instant;

/// The monotonic clock, for bounded waits.
#[allow(clippy::disallowed_methods, reason = "this is the place the lint points to")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}
