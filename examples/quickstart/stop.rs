//! Why the program stopped: what it could not do, and the error behind that.
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

/// What could not be done, with its cause.
#[derive(Debug)]
pub(crate) struct Stop {
    what: String,
    cause: Option<Box<dyn Error>>,
}

impl Stop {
    pub(crate) fn new(what: impl Display) -> Self {
        Self { what: what.to_string(), cause: None }
    }

    /// The whole chain, one cause a line.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = format!("error: {}", self.what);
        let mut cause = self.cause.as_deref();
        while let Some(error) = cause {
            text += &format!("\n  caused by: {error}");
            cause = error.source();
        }
        text
    }
}

/// For `map_err`: the error becomes the cause of `what`.
pub(crate) fn stopped<E: Into<Box<dyn Error>>>(what: impl Display) -> impl FnOnce(E) -> Stop {
    let what = what.to_string();
    move |error| Stop { what, cause: Some(error.into()) }
}

/// Ends `main`: with 1, and the causes for the reader, if it stopped.
pub(crate) fn exit(ended: Result<(), Stop>) -> ExitCode {
    let Err(stop) = ended else { return ExitCode::SUCCESS };
    eprintln!("{}", stop.with_causes());
    ExitCode::FAILURE
}
