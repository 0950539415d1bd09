//! What rustdoc shows below the user's own text.

use syn::LitStr;

use super::Declaration;
use crate::args::{Args, Given};
use crate::semantics::Semantics;
use crate::text::compact;
use crate::value::Length;

const ERRORS: &str = "\n\n# Errors\n\nThe handler's own error, or the engine's. Neither may be acknowledged.";
const ERRORS_AT_MOST_ONCE: &str = "\n\n# Errors\n\nThe handler's own error, or that it panicked. Either way the event is \
                                   lost.";

impl Declaration<'_> {
    /// The handler's section: its semantics, and every decision that was made for it.
    pub(super) fn documentation(&self) -> String {
        let args = self.args;
        let (title, promise) = match args.semantics {
            Semantics::Idempotent => {
                ("Idempotency", "Applies each event once: the key and the effect are written in one transaction.")
            }
            Semantics::AtMostOnce => (
                "At most once",
                "The delivery is acknowledged before the handler runs, so that its effect never happens twice and can be \
                 lost.",
            ),
            Semantics::NaturallyIdempotent => (
                "Naturally idempotent",
                "Runs in a transaction for every delivery: applying an event again changes nothing.",
            ),
        };
        let mut section = format!("\n\n# {title}\n\n{promise}\n\n- handler name: `{}`", args.name_of(self.handler));
        for line in key_lines(args).into_iter().chain(prose_lines(args)) {
            section.push_str("\n- ");
            section.push_str(&line);
        }
        if !self.doc_lines().any(|line| line.contains("# Errors")) {
            section.push_str(if args.semantics == Semantics::AtMostOnce { ERRORS_AT_MOST_ONCE } else { ERRORS });
        }
        section
    }
}

/// What tells a redelivery from a new event.
fn key_lines(args: &Args) -> Vec<String> {
    if args.semantics == Semantics::AtMostOnce {
        return Vec::new();
    }
    let list = |name: &str, given: &Option<Given<Vec<syn::Expr>>>| {
        let parts: Vec<String> = given.iter().flat_map(|given| &given.value).map(compact).collect();
        format!("{name}: `{}`", parts.join("`, `"))
    };
    let mut lines = Vec::new();
    lines.extend(args.key.as_ref().map(|_| list("key", &args.key)));
    if let Some(policy) = &args.policy {
        lines.push(format!("retention and redelivery window: policy `{}`", compact(&policy.value)));
    } else {
        lines.extend(args.retention.as_ref().map(|given| format!("retention: `{}`", written(&given.value))));
        let windows: Vec<String> =
            args.windows().map(|window| format!("{} {}", window.source, written(&window.length))).collect();
        let redelivery =
            if windows.is_empty() { "not declared".to_owned() } else { format!("`{}`", windows.join(" + ")) };
        lines.push(format!("redelivery window: {redelivery}"));
    }
    lines.extend(args.fingerprint.as_ref().map(|_| list("equal in every delivery of the event", &args.fingerprint)));
    lines.extend(args.occurred_at.iter().map(|given| format!("time of the event: `{}`", compact(&given.value))));
    lines.extend(args.replay.iter().map(|_| "a duplicate is handed the first result".to_owned()));
    lines.extend(args.batch.iter().map(|given| format!("many at once: `{}`", compact(&given.value))));
    lines
}

/// What was written down in words.
fn prose_lines(args: &Args) -> Vec<String> {
    let text = |text: &Option<LitStr>| text.as_ref().map_or_else(String::new, LitStr::value);
    let mut lines = Vec::new();
    lines.extend(args.reason.iter().map(|given| format!("reason: {}", given.value.value())));
    lines.extend(args.loss.iter().map(|given| format!("lost on failure: {}", given.value.value())));
    for Given { value, .. } in &args.external {
        let guard = value.guard.as_ref().map_or_else(String::new, ToString::to_string);
        let window = value.window.as_ref().map_or_else(String::new, |window| format!(", window `{}`", written(window)));
        let lookup = value.lookup.as_ref().map_or_else(String::new, |how| format!(", look-up: {}", how.value()));
        let (provider, risk) = (text(&value.provider), text(&value.risk));
        lines.push(format!("external effect: {provider}, guard `{guard}`{window}{lookup}, risk: {risk}"));
    }
    for Given { value, .. } in &args.allow {
        lines.push(format!("exception: `{}`, since {}", value.category, text(&value.reason)));
    }
    lines
}

fn written(length: &Length) -> String {
    match length {
        Length::Text(text) => text.value(),
        Length::Const(value) => compact(value),
    }
}
