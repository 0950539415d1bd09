//! The words of the catalog, once for Markdown and HTML: which only print them.

use std::borrow::Cow;

use super::entry::{Effect, Entry, Kind, guard_text};
use super::figures::{Measured, whole};
use super::length;

/// A piece of a line.
#[derive(Debug)]
pub(super) enum Span<'a> {
    Text(Cow<'a, str>),
    /// As it stands in the source.
    Code(Cow<'a, str>),
}

/// One line about a handler. Several can have one label.
#[derive(Debug)]
pub(super) struct Fact<'a> {
    pub(super) label: &'static str,
    pub(super) value: Vec<Span<'a>>,
}

pub(super) const TITLE: &str = "Handlers";
pub(super) const LEAD: &str = "What each handler does with an event that is delivered again, and for how long it \
                               remembers that the event was applied. Generated from the handlers' declarations.";
/// The columns of the summary.
pub(super) const COLUMNS: [&str; 8] =
    ["handler", "semantics", "key", "retention", "redelivery", "slack", "external effects", "exceptions"];
pub(super) const FIGURES_TITLE: &str = "Figures";
pub(super) const FIGURES_LEAD: &str = "As the database has it. The slack is what the retention is longer than the oldest \
                                       duplicate that was seen; the expected storage is rate × retention × size of a row.";
pub(super) const FIGURE_COLUMNS: [&str; 9] = [
    "handler",
    "rows",
    "oldest key",
    "purge lag",
    "oldest duplicate",
    "slack to it",
    "bytes per row",
    "keys per day",
    "expected storage",
];
/// The labels of what the page shows in place of a picture.
pub(super) const IS_IN_BOX: [&str; 2] = ["reason", "lost on failure"];
/// What follows a length that is missing.
pub(super) const SHORT: &str = " too short";
/// What stands where nothing is known or nothing is to be said.
pub(super) const NONE: &str = "–";

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Span<'a> {
    Span::Text(text.into())
}

fn code<'a>(code: impl Into<Cow<'a, str>>) -> Span<'a> {
    Span::Code(code.into())
}

fn fact<'a>(label: &'static str, value: impl IntoIterator<Item = Span<'a>>) -> Fact<'a> {
    Fact { label, value: value.into_iter().collect() }
}

/// All that is to be said of a handler.
pub(super) fn facts(entry: &Entry) -> Vec<Fact<'_>> {
    let mut facts = vec![name(entry)];
    facts.push(fact("source", [code(entry.function), text(" in "), code(entry.file.as_str())]));
    for http in &entry.endpoints {
        let whose = if http.is_webhook { "; events of " } else { "; a key belongs to: " };
        let policy = text(http.policy.as_str());
        facts.push(fact("HTTP route", [code(http.route), text(whose), text(http.scope), text("; "), policy]));
    }
    if !entry.message.is_empty() {
        facts.push(fact("message", [code(entry.message)]));
    }
    facts.push(semantics(entry.semantics));
    let [reason, loss] = IS_IN_BOX;
    facts.extend(entry.reason.map(|text| fact(reason, [Span::Text(text.into())])));
    facts.extend(entry.loss.map(|text| fact(loss, [Span::Text(text.into())])));
    if entry.has_key() {
        facts.extend(key_facts(entry));
    }
    facts.extend(entry.external.iter().map(|effect| external(effect, entry.semantics)));
    facts.extend(
        entry.exceptions.iter().map(|exception| {
            fact("exception", [code(exception.category), text(" is allowed: "), text(exception.reason)])
        }),
    );
    facts
}

fn name(entry: &Entry) -> Fact<'_> {
    let how = match (entry.name_is_pinned, entry.has_key()) {
        (true, _) => ", pinned in the declaration",
        (false, true) => ", not pinned: it is the function's own, and a rename of the function forgets every key",
        (false, false) => ", not pinned: it is the function's own",
    };
    fact("name", [code(entry.name), text(how)])
}

fn semantics(kind: Kind) -> Fact<'static> {
    let promise = match kind {
        Kind::Idempotent => ": the key and the effect are written in one transaction, so each event is applied once",
        Kind::AtMostOnce => {
            ": the delivery is acknowledged before the handler runs, so the effect never happens twice and can be lost"
        }
        Kind::NaturallyIdempotent => ": it runs for every delivery, and applying an event again changes nothing",
    };
    fact("semantics", [text(kind.text()), text(promise)])
}

fn key_facts(entry: &Entry) -> Vec<Fact<'_>> {
    let mut facts = vec![fact("key", list(&entry.key))];
    if !entry.fingerprint.is_empty() {
        let mut value = list(&entry.fingerprint);
        value.push(text(match entry.is_answered() {
            true => ": an equal key with another fingerprint is a mismatch, which HTTP answers 422",
            false => ": an equal key with another fingerprint is dead-lettered as a mismatch",
        }));
        facts.push(fact("fingerprint", value));
    }
    facts.push(match entry.occurred_at {
        Some(at) => {
            let late = ": an event that is older than the retention is refused as expired, never applied";
            fact("time of the event", [code(at), text(late)])
        }
        None => {
            let only = "not declared, so the window is the only guard: an event that comes again after its key was purged \
                        is applied a second time";
            fact("time of the event", [text(only)])
        }
    });
    if entry.replay {
        facts.push(fact("replay", [text("the result is stored, and a duplicate is handed it")]));
    }
    facts.push(fact("retention", [text(retention(entry))]));
    facts.extend(entry.policy.map(|policy| fact("policy", [code(policy)])));
    facts.push(fact("redelivery", [text(terms(entry).unwrap_or_else(|| UNDECLARED.to_owned()))]));
    facts.extend(slack(entry).map(|slack| fact("slack", [text(slack)])));
    facts
}

/// What is said of a handler whose retention is compared with nothing.
pub(super) const UNDECLARED: &str =
    "not declared, so nothing shows that the retention is longer than the time after which an event can come again";

fn external(effect: &Effect, handler: Kind) -> Fact<'_> {
    let mut value = vec![text(effect.provider), text("; guard: "), text(guard_text(effect.guard, handler))];
    value.extend(
        effect.window_secs.map(|secs| text(format!("; recognises a repeated key for {}", length::exact(secs)))),
    );
    value.extend(effect.lookup.map(|how| text(format!("; look-up: {how}"))));
    value.extend([text("; risk: "), text(effect.risk)]);
    fact("external effect", value)
}

/// Expressions, with commas between them.
pub(super) fn list<'a>(expressions: &[&'a str]) -> Vec<Span<'a>> {
    let mut spans = Vec::new();
    for expression in expressions {
        if !spans.is_empty() {
            spans.push(text(", "));
        }
        spans.push(code(*expression));
    }
    spans
}

pub(super) fn retention(entry: &Entry) -> String {
    entry.retention_secs.map_or_else(|| NONE.to_owned(), length::exact)
}

/// The terms and their sum; `None` when none is declared.
pub(super) fn terms(entry: &Entry) -> Option<String> {
    let sum = length::exact(entry.redelivery_secs?);
    let terms: Vec<_> =
        entry.redelivery.iter().map(|term| format!("{} {}", term.source, length::exact(term.secs))).collect();
    Some(format!("{} = {sum}", terms.join(" + ")))
}

pub(super) fn slack(entry: &Entry) -> Option<String> {
    Some(signed(entry.slack_secs?))
}

fn signed(secs: i64) -> String {
    let length = length::exact(secs.unsigned_abs());
    if secs < 0 { format!("{length}{SHORT}") } else { length }
}

/// The summary's cells after the handler's name.
pub(super) fn summary(entry: &Entry) -> [Vec<Span<'_>>; 7] {
    let dash = || vec![text(NONE)];
    let or_dash = |value: Vec<Span<'static>>| if value.is_empty() { dash() } else { value };
    let redelivery = match entry.redelivery_secs {
        Some(sum) => vec![text(length::exact(sum))],
        None if entry.has_key() => vec![text("not declared")],
        None => dash(),
    };
    [
        vec![text(entry.semantics.text())],
        if entry.key.is_empty() { dash() } else { list(&entry.key) },
        vec![text(retention(entry))],
        redelivery,
        slack(entry).map_or_else(dash, |slack| vec![text(slack)]),
        or_dash(joined(entry.external.iter().map(|effect| text(effect.provider)))),
        or_dash(joined(entry.exceptions.iter().map(|exception| code(exception.category)))),
    ]
}

fn joined(spans: impl Iterator<Item = Span<'static>>) -> Vec<Span<'static>> {
    let mut joined = Vec::new();
    for span in spans {
        if !joined.is_empty() {
            joined.push(text(", "));
        }
        joined.push(span);
    }
    joined
}

/// The cells of the figures after the handler's name.
pub(super) fn figure_cells(measured: &Measured<'_>) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let age = |secs: Option<u64>| or_dash(secs.map(|secs| length::about(std::time::Duration::from_secs(secs))));
    [
        or_dash(measured.rows.map(length::number)),
        age(measured.oldest_key_age_secs),
        age(measured.purge_lag_secs),
        age(measured.highest_duplicate_age_secs),
        or_dash(measured.duplicate_slack_secs.map(coarse)),
        or_dash(measured.bytes_per_row.map(length::number)),
        or_dash(measured.keys_per_day.map(|rate| length::number(whole(rate)))),
        or_dash(measured.expected_bytes.map(length::bytes)),
    ]
}

fn coarse(secs: i64) -> String {
    let length = length::about(std::time::Duration::from_secs(secs.unsigned_abs()));
    if secs < 0 { format!("{length}{SHORT}") } else { length }
}

/// Whether a character would hide or reorder others: control characters, and those that turn the text's direction.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text on one line, in which nothing is hidden.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(' '),
            '\r' => {}
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}
