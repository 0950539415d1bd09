//! Metrics, through the facade `metrics`: whoever has installed a recorder gets them.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use tokio::time::Instant;

use super::names;
use crate::clock::monotonic;

/// When something began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer(Instant);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(monotonic())
    }
}

pub(crate) fn outcome(handler: &'static str, outcome: &'static str) {
    counter!(names::OUTCOMES, "handler" => handler, "outcome" => outcome).increment(1);
}

pub(crate) fn claimed(begun: Timer) {
    histogram!(names::CLAIM).record(monotonic().saturating_duration_since(begun.0).as_secs_f64());
}

pub(crate) fn duplicate(handler: &'static str, age: Duration) {
    histogram!(names::DUPLICATE_AGE, "handler" => handler).record(age.as_secs_f64());
}

pub(crate) fn purged(handler: &str, keys: u64) {
    counter!(names::PURGED, "handler" => handler.to_owned()).increment(keys);
}

pub(crate) fn passed(took: Duration) {
    histogram!(names::PASS).record(took.as_secs_f64());
}

pub(crate) fn lag(handler: &str, lag: Duration) {
    gauge!(names::LAG, "handler" => handler.to_owned()).set(lag.as_secs_f64());
}

pub(crate) fn orphans(count: u32) {
    gauge!(names::ORPHANS).set(f64::from(count));
}

pub(crate) fn holds(count: u32) {
    gauge!(names::HOLDS).set(f64::from(count));
}

pub(crate) fn settled(broker: &'static str, how: &'static str) {
    counter!(names::SETTLED, "broker" => broker, "settlement" => how).increment(1);
}

pub(crate) fn consumer_lag(broker: &'static str, source: &str, messages: u64, oldest: Option<Duration>) {
    let source = source.to_owned();
    #[allow(clippy::cast_precision_loss, reason = "a gauge is a float, and exact up to 2^53")]
    gauge!(names::CONSUMER_LAG, "broker" => broker, "source" => source.clone()).set(messages as f64);
    if let Some(oldest) = oldest {
        gauge!(names::CONSUMER_LAG_AGE, "broker" => broker, "source" => source).set(oldest.as_secs_f64());
    }
}
