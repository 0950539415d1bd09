//! How a committed catalog differs from the code, and what to do about it.

use std::fmt;

use super::committed::{ON_PURPOSE, REASON};
use super::length;

/// How a committed catalog differs from the handlers that are linked into the program.
///
/// [`Renamed`](Self::Renamed) and [`KeyChanged`](Self::KeyChanged) forget keys, so nothing writes them into the file but a
/// human: see [`acknowledgement`](Self::acknowledgement).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Drift {
    /// There is no committed catalog.
    Missing,
    /// The file cannot be compared.
    Unreadable(Unreadable),
    /// A handler is gone, and another one has its place: the same function under another name, or the same key of the
    /// same message.
    Renamed {
        /// The name in the file.
        from: String,
        /// The name in the code.
        to: String,
        /// How long the keys were kept.
        retention_secs: Option<u64>,
    },
    /// A handler has another key than in the file.
    KeyChanged {
        /// Its name.
        handler: String,
        /// The key in the file, its parts with commas between them.
        was: String,
        /// The key in the code; empty when the handler keeps none any more.
        is: String,
        /// How long the keys were kept.
        retention_secs: Option<u64>,
    },
    /// An acknowledgement in the file that fits no change.
    Unused {
        /// Its line, counted from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// The file says something else than the code; no key is forgotten by it.
    Stale {
        /// What changed, by handler.
        changes: Vec<Change>,
    },
}

/// Why a file cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It holds the marks of a merge conflict.
    #[error("line {line} is a mark of a merge conflict; take one side of the file as it is, then write it anew")]
    Conflict {
        /// The first mark's line, counted from 1.
        line: usize,
    },
    /// It is something else.
    #[error("the file is no catalog, and is not overwritten; name another file, or delete this one")]
    Foreign,
    /// It is in another form.
    #[error("the file is in form {version}, which this version of the library does not read")]
    Version {
        /// The form's version.
        version: u32,
    },
    /// Its end is missing.
    #[error("the end of the file is missing; restore it from version control, then write it anew")]
    Truncated,
    /// A line for the program cannot be read.
    #[error("line {line} is for the program, and it cannot read it; restore the line, or delete it if it was added")]
    Line {
        /// The line, counted from 1.
        line: usize,
    },
    /// An acknowledgement says no reason.
    #[error("the acknowledgement in line {line} gives no reason")]
    NoReason {
        /// The line, counted from 1.
        line: usize,
    },
    /// One handler is in it twice.
    #[error("handler `{handler}` is in the file twice, perhaps after a merge; delete the older part")]
    Twice {
        /// Its name.
        handler: String,
    },
    /// It cannot be read or written.
    #[error("{0}")]
    File(String),
}

/// What changed about one handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Its name; empty for what belongs to no handler.
    pub handler: String,
    /// What the change means.
    pub notes: Vec<Note>,
    /// The lines that are in the file alone.
    pub removed: Vec<String>,
    /// The lines that the code would write.
    pub added: Vec<String>,
}

/// What a change means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A handler that is not in the file.
    New,
    /// A handler that is in the file alone.
    Gone,
    /// Keys are kept for a shorter time.
    RetentionShortened {
        /// In the file, in seconds.
        was_secs: u64,
        /// In the code, in seconds.
        is_secs: u64,
    },
    /// Keys are kept for a longer time.
    RetentionLengthened {
        /// In the file, in seconds.
        was_secs: u64,
        /// In the code, in seconds.
        is_secs: u64,
    },
    /// What guards the effect is another.
    SemanticsChanged {
        /// In the file.
        was: String,
        /// In the code.
        is: String,
    },
    /// Equal keys are compared by something else.
    FingerprintChanged,
    /// A change that forgets keys was acknowledged in the file.
    Acknowledged {
        /// The acknowledgement, with its reason.
        text: String,
    },
    /// Only the text was edited.
    Edited,
}

impl Drift {
    /// Whether the file can be written anew without a human's word: no key is forgotten by it, and nothing that was
    /// written by hand is lost.
    #[must_use]
    pub fn can_be_blessed(&self) -> bool {
        matches!(self, Self::Missing | Self::Unreadable(Unreadable::Empty) | Self::Stale { .. })
    }

    /// The line that acknowledges the change, to be written anywhere into the file with the reason in it. `None` where
    /// nothing is forgotten.
    #[must_use]
    pub fn acknowledgement(&self) -> Option<String> {
        Some(format!("<!-- idem: {}{REASON} -->", self.sentence()?))
    }

    /// How an acknowledgement of the change begins, up to its reason.
    pub(super) fn sentence(&self) -> Option<String> {
        let sentence = match self {
            Self::Renamed { from, to, .. } => format!("name of `{from}` changed to `{to}`{ON_PURPOSE}"),
            Self::KeyChanged { handler, was, is, .. } => {
                format!("key of `{handler}` changed from `{was}` to {}{ON_PURPOSE}", shown(is))
            }
            _ => return None,
        };
        // It is one line, and inside a comment.
        Some(sentence.replace('\r', "\\r").replace('\n', "\\n").replace("-->", "--&gt;"))
    }
}

/// The key in the code, which a handler may have none of any more.
fn shown(key: &str) -> String {
    if key.is_empty() { "none".to_owned() } else { format!("`{key}`") }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no such file\nhelp: {WRITE}"),
            Self::Unreadable(Unreadable::Empty) => write!(f, "{}\nhelp: {WRITE}", Unreadable::Empty),
            Self::Unreadable(why) => write!(f, "{why}"),
            Self::Renamed { from, to, retention_secs } => {
                write!(f, "handler `{from}` is gone, and `{to}` has its place: ")?;
                forgets(f, from, *retention_secs)?;
                write!(f, "\nhelp: to keep its keys, keep its name: `name = \"{from}\"` in the declaration of `{to}`")?;
                write!(f, "\nhelp: if `{to}` is another handler, or is meant to begin without keys")?;
                self.acknowledge(f)
            }
            Self::KeyChanged { handler, was, is, retention_secs } => {
                write!(f, "handler `{handler}` has another key, `{was}` in the file and ")?;
                write!(f, "{} in the code: ", shown(is))?;
                forgets(f, handler, *retention_secs)?;
                write!(f, "\nhelp: to keep its keys, keep its key: `key({was})`")?;
                write!(
                    f,
                    "\nhelp: for a key with a new meaning, add a handler with a new name, `name = \"{handler}.v2\"`, and \
                     keep this one until its window is over"
                )?;
                f.write_str("\nhelp: if the old keys may be forgotten")?;
                self.acknowledge(f)
            }
            Self::Unused { line, text } => write!(
                f,
                "the acknowledgement in line {line} fits no change: {text}\nhelp: correct it, or delete the line"
            ),
            Self::Stale { changes } => {
                f.write_str("the file is stale:")?;
                for change in changes {
                    write!(f, "\n{change}")?;
                }
                write!(f, "\nhelp: {WRITE}")
            }
        }
    }
}

const WRITE: &str = "`IDEM_BLESS=1 cargo test` writes it; read the difference, and commit it";

fn forgets(f: &mut fmt::Formatter<'_>, handler: &str, retention_secs: Option<u64>) -> fmt::Result {
    write!(f, "every key of `{handler}` in the window")?;
    if let Some(secs) = retention_secs {
        write!(f, " of {}", length::exact(secs))?;
    }
    f.write_str(" would be forgotten, and an event that is delivered again applied a second time")
}

impl Drift {
    fn acknowledge(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.acknowledgement().unwrap_or_default();
        write!(f, ", write this line anywhere into the file, with the reason, and run IDEM_BLESS=1:\n      {line}")
    }
}

impl std::error::Error for Drift {}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.handler.is_empty() { "beside the handlers" } else { &self.handler };
        write!(f, "  {whose}:")?;
        for (index, note) in self.notes.iter().enumerate() {
            write!(f, "{} {note}", if index == 0 { "" } else { ";" })?;
        }
        for (sign, lines) in [('-', &self.removed), ('+', &self.added)] {
            for line in lines {
                write!(f, "\n    {sign} {}", line.strip_prefix("- ").unwrap_or(line))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |secs: &u64| length::exact(*secs);
        match self {
            Self::New => f.write_str("new"),
            Self::Gone => f.write_str("gone from the code; its keys stay in the table until their retention is over"),
            Self::RetentionShortened { was_secs, is_secs } => write!(
                f,
                "retention SHORTENED from {} to {}: the next purge deletes the keys in between, and an event that is \
                 delivered again after that is applied a second time",
                length(was_secs),
                length(is_secs)
            ),
            Self::RetentionLengthened { was_secs, is_secs } => write!(
                f,
                "retention lengthened from {} to {}, which also holds for the keys that are in the table",
                length(was_secs),
                length(is_secs)
            ),
            Self::SemanticsChanged { was, is } => write!(f, "semantics changed from {was} to {is}"),
            Self::FingerprintChanged => f.write_str(
                "fingerprint changed: an event that was applied before and is delivered again is dead-lettered as a \
                 mismatch",
            ),
            Self::Acknowledged { text } => write!(f, "acknowledged: {text}"),
            Self::Edited => f.write_str("other text"),
        }
    }
}
