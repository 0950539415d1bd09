//! The same calls without the feature `metrics`: nothing is left of them.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer;

impl Timer {
    pub(crate) fn start() -> Self {
        Self
    }
}

pub(crate) fn outcome(_: &'static str, _: &'static str) {}
pub(crate) fn claimed(_: Timer) {}
pub(crate) fn duplicate(_: &'static str, _: Duration) {}
pub(crate) fn purged(_: &str, _: u64) {}
pub(crate) fn passed(_: Duration) {}
pub(crate) fn lag(_: &str, _: Duration) {}
pub(crate) fn orphans(_: u32) {}
pub(crate) fn holds(_: u32) {}
pub(crate) fn settled(_: &'static str, _: &'static str) {}
pub(crate) fn consumer_lag(_: &'static str, _: &str, _: u64, _: Option<Duration>) {}
