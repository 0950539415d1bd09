//! `handlers`: what is linked into the program.

use serde::Serialize;

use super::output::{Paint, Report, table};
use crate::catalog::length;
use crate::handler::{HandlerMeta, Semantics};
use crate::registry::Registry;

#[derive(Debug, Serialize)]
pub(super) struct Handlers {
    handlers: Vec<Row>,
}

/// The fields have the names that they have in the catalog's JSON.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    name_is_pinned: bool,
    function: &'static str,
    file: &'static str,
    line: u32,
    semantics: &'static str,
    key: &'static [&'static str],
    retention_secs: Option<u64>,
    redelivery: Vec<Window>,
    redelivery_secs: Option<u64>,
    slack_secs: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Window {
    source: &'static str,
    secs: u64,
}

pub(super) fn run(registry: &Registry) -> Handlers {
    Handlers { handlers: registry.handlers().map(Row::of).collect() }
}

/// The longest declared time after which an event comes again; `None` where none is declared.
pub(super) fn redelivery_secs(meta: &HandlerMeta) -> Option<u64> {
    let sum = meta.redelivery.iter().map(|window| window.length.as_secs()).fold(0, u64::saturating_add);
    (!meta.redelivery.is_empty()).then_some(sum)
}

impl Row {
    fn of(meta: &'static HandlerMeta) -> Self {
        let (retention_secs, redelivery_secs) = (meta.retention.map(crate::Retention::as_secs), redelivery_secs(meta));
        let window = |window: &crate::Window| Window { source: window.source, secs: window.length.as_secs() };
        Self {
            name: meta.name,
            name_is_pinned: meta.name_is_pinned,
            function: meta.place.function,
            file: meta.place.file,
            line: meta.place.line,
            semantics: match meta.semantics {
                Semantics::Idempotent => "idempotent",
                Semantics::AtMostOnce { .. } => "at_most_once",
                Semantics::NaturallyIdempotent { .. } => "naturally_idempotent",
            },
            key: meta.key,
            retention_secs,
            redelivery: meta.redelivery.iter().map(window).collect(),
            redelivery_secs,
            slack_secs: retention_secs.zip(redelivery_secs).and_then(|(kept, window)| kept.checked_sub(window)),
        }
    }

    fn cells(&self) -> [String; 6] {
        let has_key = !self.key.is_empty();
        // Nothing to declare without a key; a gap with one.
        let without = if has_key { "not declared" } else { "–" };
        let exact = |secs: Option<u64>, without: &str| secs.map_or_else(|| without.to_owned(), length::exact);
        let terms = |window: &Window| format!("{} {}", window.source, length::exact(window.secs));
        let redelivery = match self.redelivery_secs {
            Some(sum) => {
                let terms: Vec<_> = self.redelivery.iter().map(terms).collect();
                format!("{} ({})", length::exact(sum), terms.join(" + "))
            }
            None => without.to_owned(),
        };
        [
            self.name.to_owned(),
            self.semantics.replace('_', " "),
            if has_key { self.key.join(", ") } else { "–".to_owned() },
            exact(self.retention_secs, "–"),
            redelivery,
            exact(self.slack_secs, if has_key { "unknown" } else { "–" }),
        ]
    }
}

impl Report for Handlers {
    const COMMAND: &'static str = "handlers";

    fn text(&self, _: Paint) -> String {
        let head = ["NAME", "SEMANTICS", "KEY", "RETENTION", "REDELIVERY", "SLACK"];
        table(head, self.handlers.iter().map(Row::cells))
    }
}
