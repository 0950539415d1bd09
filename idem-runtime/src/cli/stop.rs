//! Why a command ended without an answer, and the exit codes.

use crate::error::{Error, ErrorKind};

/// The exit codes. A contract with scripts: `docs/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    /// Done, and nothing to report.
    Fine = 0,
    /// The answer is no.
    No = 1,
    /// Wrong usage; nothing was done.
    Usage = 2,
    /// The database cannot be reached.
    Unreachable = 3,
    /// Something that the operator has to change first.
    Refused = 4,
    /// It was tried, and failed.
    Failed = 5,
}

impl Exit {
    /// How the code is called in the JSON.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::No => "no",
            Self::Usage => "usage",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// A command that ended without an answer: what happened, whether anything is lost, what to do.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) exit: Exit,
    pub(super) text: String,
}

impl Stop {
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, text: text.into() }
    }

    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, text: text.into() }
    }

    /// The same error, with what is to be said in place of the usual.
    pub(super) fn then(error: &Error, then: &str) -> Self {
        Self { exit: exit(error.kind()), text: format!("{}; {then}", with_causes(error)) }
    }

    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, text: text.into() }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let then = match error.kind() {
            ErrorKind::Unavailable => {
                "nothing was changed; see that the address is right, the server up and nobody's lock in the way, and run \
                 the command again"
            }
            ErrorKind::ReadOnly => {
                "nothing was changed; connect to the primary, or give the file write permission, and run it again"
            }
            ErrorKind::Schema => {
                "no key is lost; run `migrate` with this program, at deployment, and then this command again"
            }
            ErrorKind::Registry => "nothing was read or changed",
            _ => "nothing was changed; mend the cause, and run it again",
        };
        Self::then(&error, then)
    }
}

fn exit(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Unavailable => Exit::Unreachable,
        ErrorKind::ReadOnly | ErrorKind::Schema | ErrorKind::Registry => Exit::Refused,
        _ => Exit::Failed,
    }
}

/// What happened, and why, on one line.
fn with_causes(error: &Error) -> String {
    let mut text = error.what();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let part = error.to_string();
        // Drivers repeat the text of their cause.
        if !text.ends_with(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text
}
