//! `doctor`: what is wrong, what that means, and what to do.

mod database;
mod recorded;

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::Target;
use super::output::{Paint, Report, instant, plain};
use super::stop::{Exit, Stop};
use crate::clock;
use crate::store::{Health, Store, schema};

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

pub(super) async fn run<S: Store>(target: Target<S>) -> Result<Diagnosis, Stop> {
    let registry = target.registry()?;
    let mut findings = recorded::undeclared_redelivery(&registry);
    let mut conn = target.connection().await?;
    if let Some(finding) = database::tables(schema::found::<S>(&mut conn).await?, schema::wanted::<S>()) {
        findings.push(finding);
        return Ok(Diagnosis::of(None, findings));
    }
    let before = clock::wall();
    let health = S::health(&mut conn).await.map_err(schema::connection_error::<S>)?;
    // The database read its clock somewhere in between.
    let here = before + clock::wall().duration_since(before).unwrap_or_default() / 2;
    findings.extend(database::skew(here, health.now_micros));
    findings.extend(database::isolation(&health.isolation));
    findings.extend(database::indexes(&health));
    findings.extend(database::autovacuum(health.autovacuum));
    findings.extend(recorded::handlers::<S>(&mut conn, target.application(), &registry).await?);
    Ok(Diagnosis::of(Some(health), findings))
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
            let (whose, what) = (plain(&whose), plain(what));
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
