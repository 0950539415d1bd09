//! A committed catalog, read back: the lines that a program reads, and between them the text that people do.
//!
//! What merge tools and editors do to a file without changing what it says does not count: line ends, spaces, the order
//! of handlers and of rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::VERSION;
use super::drift::Unreadable;
use super::entry::{Entry, Kind};
use super::facts::is_hidden;

pub(super) const HEAD: &str = "<!-- idem: catalog ";
pub(super) const HANDLER: &str = "<!-- idem: handler ";
pub(super) const CHANGES: &str = "<!-- idem: changes -->";
pub(super) const END: &str = "<!-- idem: end -->";
/// How each line begins that is for the program.
const OURS: &str = "<!-- idem:";
/// What stands before the reason of an acknowledgement.
pub(super) const ON_PURPOSE: &str = " on purpose: ";
/// What the error shows where the reason belongs.
pub(super) const REASON: &str = "REASON";

/// What a handler's keys depend on, and what shows that another one has taken its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) semantics: String,
    pub(super) key: Vec<String>,
    pub(super) retention_secs: Option<u64>,
    pub(super) fingerprint: Vec<String>,
    pub(super) function: String,
    pub(super) message: String,
}

impl Record {
    pub(super) fn of(entry: &Entry) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            name: entry.name.to_owned(),
            semantics: entry.semantics.text().to_owned(),
            key: owned(&entry.key),
            retention_secs: entry.retention_secs,
            fingerprint: owned(&entry.fingerprint),
            function: entry.function.to_owned(),
            message: entry.message.to_owned(),
        }
    }

    /// JSON that no comment ends in, whatever the texts are.
    pub(super) fn line(&self) -> String {
        // Text, numbers and lists always serialize.
        let json = serde_json::to_string(self).unwrap_or_default();
        let mut line = String::with_capacity(json.len());
        for c in json.chars() {
            if matches!(c, '<' | '>') || is_hidden(c) {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            } else {
                line.push(c);
            }
        }
        line
    }

    pub(super) fn module(&self) -> &str {
        self.function.rsplit_once("::").map_or("", |(module, _)| module)
    }

    pub(super) fn is_natural(&self) -> bool {
        self.semantics == Kind::NaturallyIdempotent.text()
    }
}

/// A handler's part of the file.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) record: Record,
    pub(super) lines: Vec<String>,
}

/// A change that somebody writes down as meant.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    pub(super) line: usize,
    /// Without the marks of a comment.
    pub(super) text: String,
}

#[derive(Debug, Default)]
pub(super) struct Committed {
    /// What precedes the handlers, sorted, since the order of rows does not count.
    pub(super) head: Vec<String>,
    pub(super) handlers: BTreeMap<String, Section>,
    pub(super) pending: Vec<Acknowledgement>,
    /// The acknowledged changes that were written before, as list items.
    pub(super) acknowledged: Vec<String>,
    /// What follows the end, where nothing belongs.
    pub(super) tail: Vec<String>,
}

/// Where a line belongs.
enum Part {
    Head,
    Handler(String),
    Changes,
    Tail,
}

impl Committed {
    pub(super) fn read(text: &str) -> Result<Self, Unreadable> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Err(Unreadable::Empty);
        }
        refuse_conflict(text)?;
        refuse_foreign(text)?;
        let mut file = Self::default();
        let mut part = Part::Head;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            // A key may hold several spaces, so what the program reads stays as it is.
            if line.starts_with(OURS) {
                part = file.marker(part, line, index + 1)?;
            } else if !line.is_empty() {
                file.push(&part, collapse(line));
            }
        }
        file.head.sort();
        if matches!(part, Part::Tail) { Ok(file) } else { Err(Unreadable::Truncated) }
    }

    /// A line for the program, which can begin another part.
    fn marker(&mut self, part: Part, line: &str, number: usize) -> Result<Part, Unreadable> {
        let garbled = || Unreadable::Line { line: number };
        if line.starts_with(HEAD) {
            return Ok(part);
        }
        if let Some(json) = line.strip_prefix(HANDLER) {
            let json = json.strip_suffix("-->").ok_or_else(garbled)?;
            let record: Record = serde_json::from_str(json.trim()).map_err(|_| garbled())?;
            let name = record.name.clone();
            let section = Section { record, lines: Vec::new() };
            return match self.handlers.insert(name.clone(), section) {
                Some(_) => Err(Unreadable::Twice { handler: name }),
                None => Ok(Part::Handler(name)),
            };
        }
        if line == CHANGES {
            return Ok(Part::Changes);
        }
        if line == END {
            return Ok(Part::Tail);
        }
        let text = line.strip_prefix(OURS).and_then(|text| text.strip_suffix("-->")).map(str::trim);
        let text = text.ok_or_else(garbled)?;
        let (_, reason) = text.split_once(ON_PURPOSE.trim_end()).ok_or_else(garbled)?;
        if reason.trim().is_empty() || reason.trim() == REASON {
            return Err(Unreadable::NoReason { line: number });
        }
        self.pending.push(Acknowledgement { line: number, text: text.to_owned() });
        Ok(part)
    }

    fn push(&mut self, part: &Part, line: String) {
        match part {
            Part::Head => self.head.push(line),
            Part::Handler(name) => {
                if let Some(section) = self.handlers.get_mut(name) {
                    section.lines.push(line);
                }
            }
            Part::Changes if line.starts_with("- ") => self.acknowledged.push(line),
            Part::Changes => {}
            Part::Tail => self.tail.push(line),
        }
    }
}

fn refuse_conflict(text: &str) -> Result<(), Unreadable> {
    let is_mark =
        |line: &str| line == "=======" || ["<<<<<<<", "|||||||", ">>>>>>>"].iter().any(|mark| line.starts_with(mark));
    match text.lines().position(|line| is_mark(line.trim_end())) {
        Some(index) => Err(Unreadable::Conflict { line: index + 1 }),
        None => Ok(()),
    }
}

/// The first line for the program says which form follows.
fn refuse_foreign(text: &str) -> Result<(), Unreadable> {
    let version = text.lines().find_map(|line| line.trim().strip_prefix(HEAD)).ok_or(Unreadable::Foreign)?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    match digits.parse::<u32>() {
        Ok(version) if version == VERSION => Ok(()),
        Ok(version) => Err(Unreadable::Version { version }),
        Err(_) => Err(Unreadable::Foreign),
    }
}

/// One space for several, and none at the ends. Tables are padded by some editors.
fn collapse(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_rule = line.len() > 2 && line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c));
    if is_rule { "|---|".to_owned() } else { line }
}
