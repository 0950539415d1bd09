//! The only place that reads a clock, and it reads only durations: instants come from the database.

use tokio::time::Instant;

/// The monotonic clock, for bounded waits.
#[allow(clippy::disallowed_methods, reason = "this is the place the lint points to")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// The process's idea of the time of day, to be compared with the database's and for nothing else.
#[cfg(any(feature = "cli", feature = "axum"))]
#[allow(clippy::disallowed_methods, reason = "this is the place the lint points to")]
pub(crate) fn wall() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
