//! What is looked at in the database itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Finding, Severity};
use crate::catalog::length;
use crate::store::Health;

/// As far as an event may be dated ahead of the database's clock.
const SKEW_THAT_REFUSES: Duration = Duration::from_secs(300);

/// More than a synchronised clock is ever off.
const SKEW_THAT_SHOWS: Duration = Duration::from_secs(5);

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn tables(found: Option<i64>, wanted: i64) -> Option<Finding> {
    let (what, action) = match found {
        Some(found) if found == wanted => return None,
        Some(found) if found > wanted => (
            format!("the tables have version {found}, and this program knows only version {wanted}"),
            "deploy the release that migrated them here too",
        ),
        Some(found) => (format!("the tables have version {found}, and version {wanted} is needed"), "run `migrate`"),
        None => (format!("there are no tables, and version {wanted} is needed"), "run `migrate`"),
    };
    let means = "no engine starts, so no event is applied; none is lost as long as the broker keeps it";
    Some(Finding { severity: Severity::Error, check: "schema", handler: None, what, means, action: action.to_owned() })
}

pub(super) fn skew(here: SystemTime, database_micros: i64) -> Option<Finding> {
    let here_micros = micros(here);
    let skew = Duration::from_micros(here_micros.abs_diff(database_micros));
    if skew < SKEW_THAT_SHOWS {
        return None;
    }
    let severity = if skew > SKEW_THAT_REFUSES { Severity::Warning } else { Severity::Note };
    let direction = if here_micros > database_micros { "ahead of" } else { "behind" };
    Some(Finding {
        severity,
        check: "clock",
        handler: None,
        what: format!("the clock of this machine is {} {direction} the database's", length::about(skew)),
        means: "keys are dated and purged by the database's clock alone; but an event that this machine dates is taken \
                for older or newer than it is, and with `occurred_at` refused beyond five minutes ahead",
        action: "synchronise both clocks (NTP)".to_owned(),
    })
}

pub(super) fn isolation(level: &str) -> Option<Finding> {
    if level != "read uncommitted" {
        return None;
    }
    Some(Finding {
        severity: Severity::Error,
        check: "isolation",
        handler: None,
        what: "transactions read what others have not committed yet".to_owned(),
        means: "a key that is still in flight is seen as applied, so a delivery can be acknowledged whose event is then \
                rolled back: it is lost",
        action: "make the default of the server or of the session `READ COMMITTED`, and start the engine with \
                 `.isolation(Isolation::ReadCommitted)`"
            .to_owned(),
    })
}

/// Measured: without it the table and its indexes grow by what a retention's worth of events takes, once per retention.
pub(super) fn autovacuum(is_on: Option<bool>) -> Option<Finding> {
    if is_on != Some(false) {
        return None;
    }
    Some(Finding {
        severity: Severity::Warning,
        check: "autovacuum",
        handler: None,
        what: "autovacuum is off, for the server or for the table `idem_key`".to_owned(),
        means: "the purge deletes keys, but their room is never used again: the table and its indexes grow without end, and \
                slow the consumers down",
        action: "turn `autovacuum` on, or run `VACUUM idem_key` at least once per retention".to_owned(),
    })
}

pub(super) fn indexes(health: &Health) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !health.indexes.iter().any(|(unique, columns)| *unique && columns == "handler,event_key") {
        findings.push(Finding {
            severity: Severity::Error,
            check: "index",
            handler: None,
            what: "the table `idem_key` has no unique index on (handler, event_key)".to_owned(),
            means: "nothing tells a duplicate, so every redelivery is applied again",
            action: "stop the consumers, remove the duplicate rows, and create the primary key of `docs/schema.md`"
                .to_owned(),
        });
    }
    if !health.indexes.iter().any(|(_, columns)| columns.starts_with("handler,claimed_at")) {
        findings.push(Finding {
            severity: Severity::Warning,
            check: "index",
            handler: None,
            what: "the table `idem_key` has no index on (handler, claimed_at)".to_owned(),
            means: "each batch of the purge reads all keys of a handler, which slows the consumers down as the table grows",
            action: "CREATE INDEX idem_key_age ON idem_key (handler, claimed_at); on PostgreSQL, CONCURRENTLY".to_owned(),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uncommitted_reads_are_an_error() {
        assert!(isolation("read uncommitted").is_some_and(|finding| finding.severity == Severity::Error));
        for level in ["read committed", "repeatable read", "serializable"] {
            assert!(isolation(level).is_none(), "{level}");
        }
    }

    #[test]
    fn a_clock_is_judged_by_how_far_it_is_off_in_either_direction() {
        let here = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let severity = |database_secs: i64| skew(here, database_secs * 1_000_000).map(|finding| finding.severity);
        assert_eq!([severity(1_000_000), severity(1_000_004)], [None, None]);
        assert_eq!([severity(999_990), severity(1_000_300)], [Some(Severity::Note); 2]);
        assert_eq!([severity(0), severity(2_000_000)], [Some(Severity::Warning); 2]);
        assert!(skew(here, 0).is_some_and(|finding| finding.what.contains("11d13h ahead of")));
    }
}
