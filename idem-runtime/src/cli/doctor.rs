//! `doctor`: what is wrong, what that means, and what to do.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::Target;
use super::handlers::redelivery_secs;
use super::output::{Paint, Report, instant};
use super::stop::{Exit, Stop};
use crate::catalog::length;
use crate::clock;
use crate::registry::Registry;
use crate::store::{Health, Store, schema};

/// As far as an event may be dated ahead of the database's clock.
const SKEW_THAT_REFUSES: Duration = Duration::from_secs(300);

/// More than a synchronised clock is ever off.
const SKEW_THAT_SHOWS: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    /// `null` where the tables are not there to be asked.
    database: Option<String>,
    database_time: Option<String>,
    findings: Vec<Finding>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// Events are applied twice, lost, or not applied at all.
    Error,
    /// It becomes one, or the guard against it cannot be judged.
    Warning,
    /// Good to know.
    Note,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// What was looked at; a name that scripts can rely on.
    pub(super) check: &'static str,
    pub(super) handler: Option<String>,
    pub(super) what: String,
    pub(super) means: &'static str,
    pub(super) action: String,
}

pub(super) async fn run<S: Store>(target: &Target<S>) -> Result<Diagnosis, Stop> {
    let registry = target.registry()?;
    let mut findings = undeclared_redelivery(&registry);
    let mut conn = target.pool().acquire().await.map_err(schema::connection_error::<S>)?;
    if let Some(finding) = tables(schema::found::<S>(&mut conn).await?, schema::wanted::<S>()) {
        findings.push(finding);
        return Ok(Diagnosis::of(None, findings));
    }
    let before = clock::wall();
    let health = S::health(&mut conn).await.map_err(schema::connection_error::<S>)?;
    drop(conn);
    // The database read its clock somewhere in between.
    let here = before + before.elapsed().unwrap_or_default() / 2;
    findings.extend(skew(micros(here), health.now_micros));
    findings.extend(isolation(&health.isolation));
    findings.extend(indexes(&health));
    Ok(Diagnosis::of(Some(health), findings))
}

fn micros(time: std::time::SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn tables(found: Option<i64>, wanted: i64) -> Option<Finding> {
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

fn skew(here_micros: i64, database_micros: i64) -> Option<Finding> {
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

fn isolation(level: &str) -> Option<Finding> {
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

fn indexes(health: &Health) -> Vec<Finding> {
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

fn undeclared_redelivery(registry: &Registry) -> Vec<Finding> {
    let keyed = registry.handlers().filter(|meta| meta.retention.is_some() && redelivery_secs(meta).is_none());
    let finding = |meta: &crate::HandlerMeta| Finding {
        severity: Severity::Warning,
        check: "redelivery",
        handler: Some(meta.name.to_owned()),
        what: "the declaration does not say for how long its events can come again".to_owned(),
        means: "nobody can judge whether the retention is long enough; an event that comes after it is applied twice",
        action: "add `redelivery(broker = \"…\", dead_letter = \"…\", replay = \"…\")` to its declaration".to_owned(),
    };
    keyed.map(finding).collect()
}

impl Diagnosis {
    fn of(health: Option<Health>, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| finding.severity);
        let time = |health: &Health| {
            instant(UNIX_EPOCH + Duration::from_micros(u64::try_from(health.now_micros).unwrap_or_default()))
        };
        Self { database_time: health.as_ref().map(time), database: health.map(|health| health.version), findings }
    }
}

impl Report for Diagnosis {
    const COMMAND: &'static str = "doctor";

    fn text(&self, paint: Paint) -> String {
        let mut lines = Vec::new();
        if let (Some(database), Some(time)) = (&self.database, &self.database_time) {
            lines.push(format!("{database}, its clock at {time}"));
        }
        for Finding { severity, check, handler, what, means, action } in &self.findings {
            let severity = match severity {
                Severity::Error => paint.bad("error"),
                Severity::Warning => paint.doubtful("warning"),
                Severity::Note => "note".to_owned(),
            };
            let whose = handler.as_ref().map_or_else(String::new, |handler| format!("handler `{handler}`: "));
            lines.push(format!("{severity} ({check}): {whose}{what}\n  means: {means}\n  to do: {action}"));
        }
        if self.findings.is_empty() {
            lines.push(paint.good("nothing found that is wrong"));
        }
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        if self.findings.iter().any(|finding| finding.severity < Severity::Note) { Exit::No } else { Exit::Fine }
    }
}
