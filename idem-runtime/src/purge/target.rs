//! Whose keys go, and when.

use std::collections::BTreeMap;

use crate::engine::{CLOCK_TOLERANCE, Engine, seconds};
use crate::store::{RecordedRow, Store};

/// How long a node that says nothing is believed to want its keys still: longer than a rolling deploy takes.
pub(crate) const GRACE_SECS: i64 = 86_400;

/// One handler's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) handler: String,
    /// What the purge goes by, without the tolerance for fast clocks.
    pub(crate) retention_secs: i64,
    /// Whether the handler is not in this program, and no node has had it for a day.
    pub(crate) is_orphan: bool,
    /// A longer retention that some node said before.
    pub(crate) shortened: Option<Shortened>,
}

/// From one retention to a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shortened {
    pub(crate) was_secs: i64,
    pub(crate) is_secs: i64,
    /// How long the longer one holds still, for the nodes that may have it.
    pub(crate) goes_in_secs: i64,
}

impl Target {
    /// The age at which keys go.
    pub(crate) fn older_than_secs(&self) -> i64 {
        with_tolerance(self.retention_secs)
    }
}

/// Every handler of the application: those of this program, and those that a node recorded once.
///
/// A key is kept as long as anybody who is known wants it: this program, another application that has a handler of the same
/// name, or a node with another release of this program: the one that started last, and any other for a day after it last
/// said so. An orphan's goes by the last retention that was recorded. `docs/retention.md` says why.
pub(crate) fn targets<S: Store>(engine: &Engine<S>, recorded: &[RecordedRow], only: Option<&str>) -> Vec<Target> {
    let registry = engine.registry();
    let in_code = registry.handlers().filter_map(|meta| Some((meta.name, seconds(meta.retention?))));
    let targets = choose(engine.application(), in_code, recorded);
    targets.into_iter().filter(|target| only.is_none_or(|only| only == target.handler)).collect()
}

fn choose<'a>(
    application: &str,
    in_code: impl Iterator<Item = (&'a str, i64)>,
    recorded: &'a [RecordedRow],
) -> Vec<Target> {
    let target = |handler: &str, retention_secs, is_orphan| Target {
        handler: handler.to_owned(),
        retention_secs,
        is_orphan,
        shortened: None,
    };
    let (ours, theirs): (Vec<_>, Vec<_>) = recorded.iter().partition(|row| row.application == application);
    let mut targets: BTreeMap<&str, Target> =
        in_code.map(|(handler, secs)| (handler, target(handler, secs, false))).collect();
    for row in &ours {
        // One that keeps no keys any more has those from before.
        if let Some(secs) = row.retention_secs.or(row.longest_retention_secs) {
            targets.entry(&row.handler).or_insert_with(|| target(&row.handler, secs, row.is_orphan()));
        }
    }
    for row in theirs {
        if let (Some(target), Some(secs)) = (targets.get_mut(row.handler.as_str()), longest(row)) {
            target.retention_secs = target.retention_secs.max(secs);
        }
    }
    for row in ours {
        let (Some(target), Some(was_secs)) = (targets.get_mut(row.handler.as_str()), longest(row)) else { continue };
        let is_secs = target.retention_secs;
        if was_secs > is_secs {
            // No node with the shorter one has started since, and only with that the day begins.
            let is_last_word = row.retention_secs.is_some_and(|secs| secs > is_secs);
            let goes_in_secs =
                GRACE_SECS - if is_last_word { 0 } else { row.longest_seen_secs_ago.clamp(0, GRACE_SECS) };
            target.shortened = Some(Shortened { was_secs, is_secs, goes_in_secs });
            target.retention_secs = if goes_in_secs > 0 { was_secs } else { is_secs };
        }
    }
    targets.into_values().collect()
}

fn longest(row: &RecordedRow) -> Option<i64> {
    row.longest_retention_secs.max(row.retention_secs)
}

/// Events may be dated ahead of the database's clock by so much, so keys are kept as much longer.
pub(crate) fn with_tolerance(secs: i64) -> i64 {
    secs.saturating_add(i64::try_from(CLOCK_TOLERANCE.as_secs()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn row(application: &str, handler: &str, secs: Option<i64>, longest: i64, seen_secs_ago: i64) -> RecordedRow {
        RecordedRow {
            application: application.to_owned(),
            handler: handler.to_owned(),
            key_text: String::new(),
            retention_secs: secs,
            seen_secs_ago,
            longest_retention_secs: Some(longest),
            longest_seen_secs_ago: seen_secs_ago,
            highest_duplicate_age_secs: 0,
        }
    }

    fn chosen(rows: &[RecordedRow]) -> Vec<(String, i64, bool, Option<i64>)> {
        let targets = choose("ours", [("credit", 3 * DAY)].into_iter(), rows);
        targets
            .into_iter()
            .map(|it| {
                (it.handler, it.retention_secs / DAY, it.is_orphan, it.shortened.map(|to| to.goes_in_secs / 3_600))
            })
            .collect()
    }

    #[test]
    fn whoever_wants_a_key_longest_gets_it() {
        let credit = |days, goes_in| vec![("credit".to_owned(), days, false, goes_in)];
        assert_eq!(chosen(&[]), credit(3, None));
        // The code counts, not what was recorded, when that is shorter.
        assert_eq!(chosen(&[row("ours", "credit", Some(DAY), DAY, 0)]), credit(3, None));
        // A node of another release said more within the day, or before it.
        assert_eq!(chosen(&[row("ours", "credit", Some(3 * DAY), 7 * DAY, DAY / 4)]), credit(7, Some(18)));
        assert_eq!(chosen(&[row("ours", "credit", Some(3 * DAY), 7 * DAY, DAY + 1)]), credit(3, Some(0)));
        // Another application, however long ago; and it does not give it a handler.
        assert_eq!(chosen(&[row("theirs", "credit", Some(9 * DAY), 9 * DAY, 90 * DAY)]), credit(9, None));
        assert_eq!(chosen(&[row("theirs", "other", Some(DAY), DAY, 0)]), credit(3, None));
    }

    #[test]
    fn an_orphan_keeps_its_last_retention() {
        let gone = |days| vec![("credit".to_owned(), 3, false, None), ("gone".to_owned(), days, true, None)];
        assert_eq!(chosen(&[row("ours", "gone", Some(DAY), DAY, 90 * DAY)]), gone(1));
        // It keeps no keys any more, and had some.
        assert_eq!(chosen(&[row("ours", "gone", None, 2 * DAY, 90 * DAY)]), gone(2));
    }
}
