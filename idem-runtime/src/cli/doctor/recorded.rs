//! What is looked at in the handlers: what the code declares, what nodes have recorded, what the keys say.

use std::time::Duration;

use super::super::handlers::redelivery_secs;
use super::super::stop::Stop;
use super::{Finding, Severity};
use crate::HandlerMeta;
use crate::catalog::length;
use crate::engine::{CLOCK_TOLERANCE, seconds};
use crate::registry::Registry;
use crate::store::{RecordedRow, Store, schema};

/// Six passes of the purge, as often as it comes by default.
const LAG_THAT_SHOWS: i64 = 3_600;

pub(super) fn undeclared_redelivery(registry: &Registry) -> Vec<Finding> {
    let keyed = registry.handlers().filter(|meta| meta.retention.is_some() && redelivery_secs(meta).is_none());
    let finding = |meta: &HandlerMeta| Finding {
        severity: Severity::Warning,
        check: "redelivery",
        handler: Some(meta.name.to_owned()),
        what: "the declaration does not say for how long its events can come again".to_owned(),
        means: "nobody can judge whether the retention is long enough; an event that comes after it is applied twice",
        action: "add `redelivery(broker = \"…\", dead_letter = \"…\", replay = \"…\")` to its declaration".to_owned(),
    };
    keyed.map(finding).collect()
}

pub(super) async fn handlers<S: Store>(
    conn: &mut S::Connection,
    application: &str,
    registry: &Registry,
) -> Result<Vec<Finding>, Stop> {
    let failed = schema::connection_error::<S>;
    let recorded = S::recorded(conn).await.map_err(failed)?;
    let holds = S::holds(conn).await.map_err(failed)?;
    let mut findings = Vec::new();
    for hold in &holds {
        findings.push(Finding {
            severity: Severity::Note,
            check: "hold",
            handler: None,
            what: format!("hold {} is in force, by {}: {}", hold.id, hold.author, hold.reason),
            means: "no node purges, and the table of keys grows",
            action: format!("when the incident is over: `release {}`", hold.id),
        });
    }
    for row in &recorded {
        match registry.get(&row.handler) {
            Some(meta) if row.application == application => findings.extend(changed(meta, row)),
            Some(meta) if meta.retention.is_some() => findings.push(shared(row)),
            None if row.application == application && row.is_orphan() => findings.push(orphaned(row)),
            _ => {}
        }
    }
    for meta in registry.handlers() {
        let Some(retention) = meta.retention else { continue };
        let wanted = recorded.iter().filter(|row| row.handler == meta.name).filter_map(|row| row.retention_secs);
        let kept = wanted.fold(seconds(retention), i64::max);
        let oldest = S::oldest_secs(conn, meta.name).await.map_err(failed)?;
        findings.extend(lag(meta, oldest, kept, !holds.is_empty()));
    }
    Ok(findings)
}

fn text(secs: i64) -> String {
    length::about(Duration::from_secs(u64::try_from(secs).unwrap_or(0)))
}

fn finding(severity: Severity, check: &'static str, handler: &str, what: String, means: &'static str) -> Finding {
    Finding { severity, check, handler: Some(handler.to_owned()), what, means, action: String::new() }
}

/// What nodes have recorded of a handler of this program.
fn changed(meta: &HandlerMeta, row: &RecordedRow) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is = meta.key.join(", ");
    if row.key_text != is {
        findings.push(Finding {
            action: "restore the key, or give the handler a new name; a node with this program must not start before"
                .to_owned(),
            ..finding(
                Severity::Error,
                "key",
                meta.name,
                format!("its key is `{is}` in this program, and `{}` on the node that started last", row.key_text),
                "every stored key is forgotten, and an event that is delivered again is applied a second time",
            )
        });
    }
    let (Some(kept), Some(was)) = (meta.retention.map(seconds), row.retention_secs) else {
        return findings;
    };
    if kept < was {
        findings.push(Finding {
            action: "`purge --dry-run` counts the keys that it exposes; deploy it only if that is meant".to_owned(),
            ..finding(
                Severity::Warning,
                "retention",
                meta.name,
                format!(
                    "its retention is {} in this program, and {} on the node that started last",
                    text(kept),
                    text(was)
                ),
                "once a node with this program has started, the purge deletes the keys in between",
            )
        });
    }
    let highest = row.highest_duplicate_age_secs;
    if highest > kept.saturating_sub(kept / 5) {
        let severity = if highest > kept { Severity::Error } else { Severity::Warning };
        findings.push(Finding {
            action: "lengthen the retention, which saves the keys that are stored already; then find out what delivers so late"
                .to_owned(),
            ..finding(
                severity,
                "duplicate_age",
                meta.name,
                format!("a duplicate came {} after the first delivery, and keys are kept for {}", text(highest), text(kept)),
                "a redelivery that comes a little later finds its key purged, and the event is applied a second time",
            )
        });
    }
    findings
}

fn shared(row: &RecordedRow) -> Finding {
    Finding {
        action: "give one of them a name of its own, or a database of its own".to_owned(),
        ..finding(
            Severity::Error,
            "shared_name",
            &row.handler,
            format!("application `{}` has a handler of the same name in this database", row.application),
            "they take each other's events for duplicates where the keys are equal, and those are not applied",
        )
    }
}

fn orphaned(row: &RecordedRow) -> Finding {
    let kept = text(row.retention_secs.unwrap_or(0));
    Finding {
        action: "if it was renamed, restore its name with `name = \"…\"`; if it is gone for good, nothing".to_owned(),
        ..finding(
            Severity::Warning,
            "orphan",
            &row.handler,
            format!(
                "it was recorded {} ago and is not in this program; its keys are kept for {kept}",
                text(row.seen_secs_ago)
            ),
            "if it was renamed, its keys are forgotten, and an event that is delivered again is applied a second time",
        )
    }
}

fn lag(meta: &HandlerMeta, oldest: Option<i64>, kept: i64, is_held: bool) -> Option<Finding> {
    let tolerance = i64::try_from(CLOCK_TOLERANCE.as_secs()).unwrap_or(0);
    let lag = oldest?.saturating_sub(kept).saturating_sub(tolerance);
    if lag <= LAG_THAT_SHOWS {
        return None;
    }
    let action = if is_held {
        "release the hold when the incident is over"
    } else {
        "start `Purger::new(&engine).spawn()` in the application, or run `purge` from time to time"
    };
    Some(Finding {
        action: action.to_owned(),
        ..finding(
            if is_held { Severity::Note } else { Severity::Warning },
            "purge_lag",
            meta.name,
            format!("its oldest key should have been purged {} ago", text(lag)),
            "the table and its indexes grow, and slow the consumers down; no event is lost or doubled",
        )
    })
}
