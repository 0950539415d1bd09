//! `show`: was this event applied, when, and by which handler.

use std::time::Duration;

use serde::Serialize;

use super::opt;
use super::output::{Paint, Report, instant, plain};
use super::stop::{Exit, Stop};
use crate::catalog::length;
use crate::engine::Engine;
use crate::handler::HandlerMeta;
use crate::key::Key;
use crate::key::typed::{Typed, other_readings};
use crate::purge::{self, FoundKey};
use crate::registry::Registry;
use crate::store::Store;

#[derive(Debug, Serialize)]
pub(super) struct Shown {
    /// The key as it stands in the table.
    key: String,
    /// The handlers that were asked.
    asked: Vec<String>,
    found: Vec<Found>,
    /// When somebody forgot the key on purpose.
    forgotten: Vec<Forgotten>,
    /// Why it may not have been found.
    hints: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Found {
    handler: String,
    /// Whether this program knows the handler.
    registered: bool,
    claimed_at: String,
    age_secs: u64,
    /// How long until the key may be purged; `null` for a handler that this program does not know.
    kept_for_secs: Option<u64>,
    has_fingerprint: bool,
    has_result: bool,
}

#[derive(Debug, Serialize)]
struct Forgotten {
    handler: String,
    age_secs: u64,
    author: String,
    reason: String,
}

/// The key that was typed, part by part or as it is stored.
pub(super) fn key(typed: &opt::EventKey) -> Result<Key, Stop> {
    if let [only] = typed.parts.as_slice()
        && let Some(key) = Key::from_stored(only)
    {
        return Ok(key);
    }
    let parts: Vec<Typed> = typed
        .parts
        .iter()
        .map(|part| part.parse())
        .collect::<Result<_, _>>()
        .map_err(|error| Stop::usage(format!("the key cannot be read: {error}; nothing was looked for")))?;
    match Key::of_typed(&parts) {
        Some(Ok(key)) => Ok(key),
        Some(Err(error)) => Err(Stop::usage(format!("{error}, and no event has such a key; nothing was looked for"))),
        None => Err(Stop::usage("a key has at least one part; nothing was looked for")),
    }
}

pub(super) async fn run<S: Store>(engine: &Engine<S>, options: &opt::Show, key: &Key) -> Result<Shown, Stop> {
    let registry = engine.registry();
    let asked: Vec<String> = match &options.handler {
        Some(handler) => vec![handler.clone()],
        None => registry.handlers().filter(|meta| !meta.key.is_empty()).map(|meta| meta.name.to_owned()).collect(),
    };
    let (mut found, mut forgotten) = (Vec::new(), Vec::new());
    for handler in &asked {
        if let Some(row) = purge::find_key(engine, handler, key).await? {
            found.push(Found::of(handler, registry.get(handler), &row));
        }
        let rows = purge::forgotten(engine, handler, key).await?;
        forgotten.extend(rows.into_iter().map(|row| Forgotten::of(handler, row)));
    }
    let hints = if found.is_empty() && forgotten.is_empty() { hints(options, registry) } else { Vec::new() };
    Ok(Shown { key: key.to_string(), asked, found, forgotten, hints })
}

impl Found {
    fn of(handler: &str, meta: Option<&'static HandlerMeta>, found: &FoundKey) -> Self {
        let retention = meta.and_then(|meta| meta.retention);
        Self {
            handler: handler.to_owned(),
            registered: meta.is_some(),
            claimed_at: instant(found.claimed_at),
            age_secs: found.age.as_secs(),
            kept_for_secs: retention.map(|kept| kept.as_secs().saturating_sub(found.age.as_secs())),
            has_fingerprint: found.has_fingerprint,
            has_result: found.has_result,
        }
    }
}

impl Forgotten {
    fn of(handler: &str, row: purge::Forgotten) -> Self {
        Self { handler: handler.to_owned(), age_secs: row.age.as_secs(), author: row.author, reason: row.reason }
    }
}

/// What may have been typed wrong.
fn hints(options: &opt::Show, registry: &Registry) -> Vec<String> {
    let parts = &options.key.parts;
    let mut hints = Vec::new();
    for part in parts {
        let readings = other_readings(part);
        if !readings.is_empty() {
            hints.push(format!(
                "`{part}` was taken for text; if the handler's key has another type there, write {readings}"
            ));
        }
    }
    let Some(handler) = &options.handler else {
        return hints;
    };
    match registry.get(handler) {
        None => hints.push(format!("this program has no handler `{handler}`; `handlers` lists those that it has")),
        Some(meta) if meta.key.is_empty() => hints.push(format!("handler `{handler}` keeps no keys")),
        Some(meta) if meta.key.len() != parts.len() && Key::from_stored(&parts[0]).is_none() => hints.push(format!(
            "the key of `{handler}` has {}, `{}`, and the one that was given has {}",
            parts_of(meta.key.len()),
            meta.key.join(", "),
            parts.len(),
        )),
        Some(_) => {}
    }
    hints
}

fn parts_of(count: usize) -> String {
    if count == 1 { "1 part".to_owned() } else { format!("{count} parts") }
}

impl Report for Shown {
    const COMMAND: &'static str = "show";

    fn text(&self, paint: Paint) -> String {
        let mut lines = vec![format!("key       {}", self.key)];
        for found in &self.found {
            let age = length::about(Duration::from_secs(found.age_secs));
            lines.push(format!(
                "{}   by `{}` at {}, {age} ago",
                paint.good("applied"),
                found.handler,
                found.claimed_at
            ));
            lines.push(match (found.kept_for_secs, found.registered) {
                (Some(0), _) => "          its retention is over, so it may be purged at any time".to_owned(),
                (Some(secs), _) => format!("          kept for another {}", length::about(Duration::from_secs(secs))),
                (None, true) => "          by a handler that keeps no keys any more".to_owned(),
                (None, false) => "          by a handler that this program does not know".to_owned(),
            });
        }
        if self.found.is_empty() {
            lines.push(format!(
                "{} by {}: it was not applied, or longer ago than the retention, or its key was forgotten",
                paint.doubtful("not found"),
                if self.asked.is_empty() { "any handler".to_owned() } else { format!("`{}`", self.asked.join("`, `")) },
            ));
        }
        for Forgotten { handler, age_secs, author, reason } in &self.forgotten {
            let (author, reason, age) = (plain(author), plain(reason), length::about(Duration::from_secs(*age_secs)));
            lines.push(format!("forgotten by {author} for `{handler}`, {age} ago: {reason}"));
        }
        lines.extend(self.hints.iter().map(|hint| format!("hint: {hint}")));
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        if self.found.is_empty() { Exit::No } else { Exit::Fine }
    }
}
