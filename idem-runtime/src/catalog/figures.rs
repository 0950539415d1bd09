//! What a database says of the handlers, as plain data: the catalog asks none.

use std::time::Duration;

use serde::Serialize;

use super::entry::Entry;
use crate::purge::HandlerFigures;

const DAY_SECS: f64 = 86_400.0;

/// What a database says of one handler. What is not known is `None`.
///
/// More may be added: fill the rest from `Figures::default()`.
///
/// ```
/// use idem_runtime::Figures;
///
/// let figures = Figures { handler: "credit".to_owned(), rows: Some(120_000), ..Figures::default() };
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The handler's name. One that is not in the catalog is shown as orphaned.
    pub handler: String,
    /// How many keys are in the table.
    pub rows: Option<u64>,
    /// The age of the oldest key.
    pub oldest_key_age: Option<Duration>,
    /// For how long the oldest overdue key has been overdue; zero when none is.
    pub purge_lag: Option<Duration>,
    /// How old the first sight was, at most, when a duplicate came.
    pub highest_duplicate_age: Option<Duration>,
    /// What a row takes, its part of the indexes included.
    pub bytes_per_row: Option<u64>,
    /// How many new keys come in a day.
    pub keys_per_day: Option<f64>,
}

impl From<HandlerFigures> for Figures {
    /// The keys of the last day are taken for those of a day.
    fn from(figures: HandlerFigures) -> Self {
        Self {
            handler: figures.handler,
            rows: Some(figures.rows),
            oldest_key_age: figures.oldest_key_age,
            purge_lag: Some(figures.purge_lag),
            highest_duplicate_age: Some(figures.highest_duplicate_age).filter(|age| !age.is_zero()),
            bytes_per_row: figures.bytes_per_row,
            keys_per_day: Some(figures.keys_last_day as f64),
        }
    }
}

/// The figures, beside what follows from them. The fields are those of the JSON form.
#[derive(Debug, Serialize)]
pub(super) struct Measured<'a> {
    pub(super) handler: &'a str,
    /// Whether the program does not know the handler.
    pub(super) orphaned: bool,
    pub(super) rows: Option<u64>,
    pub(super) oldest_key_age_secs: Option<u64>,
    pub(super) purge_lag_secs: Option<u64>,
    pub(super) highest_duplicate_age_secs: Option<u64>,
    /// What the retention is longer than the oldest duplicate that was seen.
    pub(super) duplicate_slack_secs: Option<i64>,
    pub(super) bytes_per_row: Option<u64>,
    pub(super) keys_per_day: Option<f64>,
    /// Rate × retention × size of a row.
    pub(super) expected_bytes: Option<u64>,
}

impl<'a> Measured<'a> {
    pub(super) fn of(figures: &'a Figures, entry: Option<&Entry>) -> Self {
        let secs = |age: Option<Duration>| age.map(|age| age.as_secs());
        let retention = entry.and_then(|entry| entry.retention_secs);
        let highest = secs(figures.highest_duplicate_age);
        let rate = figures.keys_per_day.filter(|rate| rate.is_finite() && *rate >= 0.0);
        Self {
            handler: &figures.handler,
            orphaned: entry.is_none(),
            rows: figures.rows,
            oldest_key_age_secs: secs(figures.oldest_key_age),
            purge_lag_secs: secs(figures.purge_lag),
            highest_duplicate_age_secs: highest,
            duplicate_slack_secs: retention.zip(highest).and_then(|(kept, age)| kept.checked_signed_diff(age)),
            bytes_per_row: figures.bytes_per_row,
            keys_per_day: rate,
            expected_bytes: expected(rate, retention, figures.bytes_per_row),
        }
    }
}

fn expected(keys_per_day: Option<f64>, retention_secs: Option<u64>, bytes_per_row: Option<u64>) -> Option<u64> {
    let days = retention_secs? as f64 / DAY_SECS;
    Some(whole(keys_per_day? * days * bytes_per_row? as f64))
}

/// A number that is not negative, rounded.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
pub(super) fn whole(number: f64) -> u64 {
    number.round() as u64
}
