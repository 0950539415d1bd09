//! Comparing a committed catalog with the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use super::Catalog;
use super::committed::{Acknowledgement, Committed, Record, Section};
use super::drift::{Change, Drift, Note, Unreadable};
use super::markdown;

impl Catalog {
    /// Compares the catalog with the committed Markdown.
    ///
    /// Line ends, spaces and the order of handlers do not count.
    ///
    /// # Errors
    ///
    /// The gravest of the [`drifts`](Self::drifts).
    pub fn check(&self, committed: &str) -> Result<(), Drift> {
        self.drifts(committed).into_iter().next().map_or(Ok(()), Err)
    }

    /// Compares the catalog with the committed Markdown, and gives all that differs, the gravest first; empty when
    /// nothing does.
    #[must_use]
    pub fn drifts(&self, committed: &str) -> Vec<Drift> {
        match Committed::read(committed) {
            Ok(file) => self.compare(&file),
            Err(why) => vec![Drift::Unreadable(why)],
        }
    }

    /// What to commit in place of `committed`, or for the first time. Changes that were acknowledged are listed in it.
    ///
    /// # Errors
    ///
    /// What only a human can decide: every drift that [cannot be blessed](Drift::can_be_blessed).
    pub fn bless(&self, committed: Option<&str>) -> Result<String, Vec<Drift>> {
        let file = match committed.map(Committed::read) {
            None | Some(Err(Unreadable::Empty)) => return Ok(markdown::committed(self, &[])),
            Some(Err(why)) => return Err(vec![Drift::Unreadable(why)]),
            Some(Ok(file)) => file,
        };
        let drifts: Vec<_> = self.compare(&file).into_iter().filter(|drift| !drift.can_be_blessed()).collect();
        if !drifts.is_empty() {
            return Err(drifts);
        }
        let now = file.pending.iter().map(|pending| format!("- {}", pending.text));
        let acknowledged: Vec<_> = file.acknowledged.iter().cloned().chain(now).collect();
        Ok(markdown::committed(self, &acknowledged))
    }

    /// The same as [`drifts`](Self::drifts) for a file.
    #[must_use]
    pub fn drifts_of_file(&self, path: &Path) -> Vec<Drift> {
        match read(path) {
            Ok(Some(text)) => self.drifts(&text),
            Ok(None) => vec![Drift::Missing],
            Err(why) => vec![Drift::Unreadable(why)],
        }
    }

    /// The same as [`bless`](Self::bless) for a file, which is written if it differs. Says whether it was.
    ///
    /// # Errors
    ///
    /// As from [`bless`](Self::bless), and [`Unreadable::File`] when the file cannot be read or written.
    pub fn bless_file(&self, path: &Path) -> Result<bool, Vec<Drift>> {
        let failed = |why| vec![Drift::Unreadable(why)];
        let committed = read(path).map_err(failed)?;
        if committed.as_ref().is_some_and(|text| self.drifts(text).is_empty()) {
            return Ok(false);
        }
        let text = self.bless(committed.as_deref())?;
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(path, text)).map_err(|error| failed(Unreadable::File(error.to_string())))?;
        Ok(true)
    }

    fn compare(&self, file: &Committed) -> Vec<Drift> {
        // The code's side takes the same way, so that a line is compared with a line.
        let code = match Committed::read(&markdown::committed(self, &[])) {
            Ok(code) => code,
            Err(why) => return vec![Drift::Unreadable(why)],
        };
        let mut pending = Pending::of(&file.pending);
        let mut forgetful = renamed(file, &code);
        forgetful.extend(keys_changed(file, &code));
        let mut drifts: Vec<_> = forgetful.into_iter().filter(|drift| !pending.take(drift)).collect();
        drifts.extend(pending.unused());
        let changes = changes(file, &code, &pending);
        if !changes.is_empty() {
            drifts.push(Drift::Stale { changes });
        }
        drifts
    }
}

fn read(path: &Path) -> Result<Option<String>, Unreadable> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unreadable::File(error.to_string())),
    }
}

/// Acknowledgements in the file, each good for one change.
struct Pending<'a> {
    unused: Vec<&'a Acknowledgement>,
    /// By the handler that the change is about.
    used: BTreeMap<String, &'a Acknowledgement>,
}

impl<'a> Pending<'a> {
    fn of(all: &'a [Acknowledgement]) -> Self {
        Self { unused: all.iter().collect(), used: BTreeMap::new() }
    }

    /// Uses the acknowledgement of this change up, if there is one.
    fn take(&mut self, drift: &Drift) -> bool {
        let (Some(sentence), Drift::Renamed { to: handler, .. } | Drift::KeyChanged { handler, .. }) =
            (drift.sentence(), drift)
        else {
            return false;
        };
        let Some(found) = self.unused.iter().position(|pending| pending.text.starts_with(&sentence)) else {
            return false;
        };
        self.used.insert(handler.clone(), self.unused.swap_remove(found));
        true
    }

    fn note(&self, handler: &str) -> Option<Note> {
        self.used.get(handler).map(|used| Note::Acknowledged { text: used.text.clone() })
    }

    fn unused(&self) -> impl Iterator<Item = Drift> {
        self.unused.iter().map(|pending| Drift::Unused { line: pending.line, text: pending.text.clone() })
    }
}

/// Handlers that are gone, and have a successor in the code. One that keeps no key has nothing to forget, and a successor
/// that is naturally idempotent needs none.
fn renamed(file: &Committed, code: &Committed) -> Vec<Drift> {
    let gone = missing_from(code, file).filter(|record| !record.key.is_empty());
    let new: Vec<_> = missing_from(file, code).filter(|record| !record.is_natural()).collect();
    let mut pairs: Vec<_> =
        gone.flat_map(|from| new.iter().filter_map(move |&to| Some((likeness(from, to)?, from, to)))).collect();
    pairs.sort_by_key(|(likeness, from, to)| (*likeness, &from.name, &to.name));
    let (mut drifts, mut paired) = (Vec::new(), BTreeSet::new());
    for (_, from, to) in pairs {
        // The names of the two sides are different ones, so one set holds both.
        if !paired.contains(&from.name) && !paired.contains(&to.name) {
            paired.extend([&from.name, &to.name]);
            let retention_secs = from.retention_secs;
            drifts.push(Drift::Renamed { from: from.name.clone(), to: to.name.clone(), retention_secs });
        }
    }
    drifts
}

fn missing_from<'a>(other: &'a Committed, side: &'a Committed) -> impl Iterator<Item = &'a Record> {
    let missing = |section: &&Section| !other.handlers.contains_key(&section.record.name);
    side.handlers.values().filter(missing).map(|section| &section.record)
}

/// How much one handler looks like another one's successor, the smaller the more; `None` if it does not.
fn likeness(from: &Record, to: &Record) -> Option<u8> {
    let same_event = from.key == to.key && from.message == to.message;
    match () {
        () if from.function == to.function => Some(0),
        () if same_event && from.module() == to.module() => Some(1),
        () if same_event => Some(2),
        () => None,
    }
}

/// Handlers with another key. One that is naturally idempotent now needs none.
fn keys_changed(file: &Committed, code: &Committed) -> Vec<Drift> {
    let both =
        file.handlers.values().filter_map(|was| Some((&was.record, &code.handlers.get(&was.record.name)?.record)));
    both.filter(|(was, is)| !was.key.is_empty() && was.key != is.key && !is.is_natural())
        .map(|(was, is)| Drift::KeyChanged {
            handler: was.name.clone(),
            was: was.key.join(", "),
            is: is.key.join(", "),
            retention_secs: was.retention_secs,
        })
        .collect()
}

/// What else the file says than the code.
fn changes(file: &Committed, code: &Committed, pending: &Pending<'_>) -> Vec<Change> {
    let (none, mut changes) = (Vec::new(), Vec::new());
    for (name, Section { record, lines }) in &file.handlers {
        match code.handlers.get(name) {
            None => changes.push(change(name, vec![Note::Gone], lines, &none)),
            Some(now) if now.record != *record || now.lines != *lines => {
                let mut notes = notes(record, &now.record);
                notes.extend(pending.note(name));
                if notes.is_empty() {
                    notes.push(Note::Edited);
                }
                changes.push(change(name, notes, lines, &now.lines));
            }
            Some(_) => {}
        }
    }
    for (name, section) in code.handlers.iter().filter(|(name, _)| !file.handlers.contains_key(*name)) {
        let notes = std::iter::once(Note::New).chain(pending.note(name)).collect();
        changes.push(change(name, notes, &none, &section.lines));
    }
    // The summary follows from the handlers.
    if changes.is_empty() && (file.head != code.head || !file.tail.is_empty()) {
        let head: Vec<_> = file.head.iter().chain(&file.tail).cloned().collect();
        changes.push(change("", vec![Note::Edited], &head, &code.head));
    }
    changes.sort_by(|a, b| a.handler.cmp(&b.handler));
    changes
}

/// Anchors and headings say nothing that the name does not.
fn is_readable(line: &str) -> bool {
    !line.starts_with("<a id=") && !line.starts_with("## ")
}

fn change(handler: &str, notes: Vec<Note>, was: &[String], is: &[String]) -> Change {
    Change { handler: handler.to_owned(), notes, removed: only(was, is), added: only(is, was) }
}

fn notes(was: &Record, is: &Record) -> Vec<Note> {
    let mut notes = Vec::new();
    if was.semantics != is.semantics {
        notes.push(Note::SemanticsChanged { was: was.semantics.clone(), is: is.semantics.clone() });
    }
    match (was.retention_secs, is.retention_secs) {
        (Some(was_secs), Some(is_secs)) if is_secs < was_secs => {
            notes.push(Note::RetentionShortened { was_secs, is_secs });
        }
        (Some(was_secs), Some(is_secs)) if is_secs > was_secs => {
            notes.push(Note::RetentionLengthened { was_secs, is_secs });
        }
        _ => {}
    }
    if was.fingerprint != is.fingerprint {
        notes.push(Note::FingerprintChanged);
    }
    notes
}

/// The readable lines that the other side has not, or not as often.
fn only(lines: &[String], other: &[String]) -> Vec<String> {
    let mut rest: Vec<&String> = other.iter().collect();
    let mut only = Vec::new();
    for line in lines {
        match rest.iter().position(|other| *other == line) {
            Some(found) => {
                rest.swap_remove(found);
            }
            None if is_readable(line) => only.push(line.clone()),
            None => {}
        }
    }
    only
}
