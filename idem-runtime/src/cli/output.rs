//! What is printed, and how: text for people, one JSON document for programs.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::stop::{Exit, Stop};

/// The version of the JSON documents; goes up when a reader of the old one would be misled.
const VERSION: u32 = 1;

/// What a command has found.
pub(super) trait Report: Serialize {
    /// The command's name.
    const COMMAND: &'static str;

    /// What people read, without a line end.
    fn text(&self, paint: Paint) -> String;

    /// What scripts read.
    fn exit(&self) -> Exit {
        Exit::Fine
    }
}

#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    command: &'static str,
    exit_code: u8,
    #[serde(flatten)]
    found: &'a T,
}

#[derive(Serialize)]
struct Failed<'a> {
    error: Problem<'a>,
}

#[derive(Serialize)]
struct Problem<'a> {
    kind: &'static str,
    text: &'a str,
}

/// Where a command's answer goes.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints what was found.
    pub(super) fn print<R: Report>(&self, report: &R) -> Result<Exit, Stop> {
        let exit = report.exit();
        if self.json {
            self.document(R::COMMAND, exit, report)?;
        } else {
            let paint = Paint { on: io::stdout().is_terminal() && wants_colours() };
            self.text(&format!("{}\n", report.text(paint)))?;
        }
        Ok(exit)
    }

    /// Prints text as it is.
    pub(super) fn text(&self, text: &str) -> Result<(), Stop> {
        match io::stdout().lock().write_all(text.as_bytes()) {
            // `… | head` has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| Stop::failed(format!("standard output cannot be written: {error}"))),
        }
    }

    /// Says on standard error why there is no answer, and in JSON on standard output as well.
    pub(super) fn stop(&self, command: &'static str, stop: &Stop) -> Exit {
        let paint = Paint { on: io::stderr().is_terminal() && wants_colours() };
        // Who cannot be told the error is told by the exit code.
        let _ = writeln!(io::stderr(), "{}: {}", paint.bad("error"), stop.text);
        if self.json {
            let failed = Failed { error: Problem { kind: stop.exit.kind(), text: &stop.text } };
            let _ = self.document(command, stop.exit, &failed);
        }
        stop.exit
    }

    fn document<T: Serialize>(&self, command: &'static str, exit: Exit, found: &T) -> Result<(), Stop> {
        let document = Document { version: VERSION, command, exit_code: exit as u8, found };
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| Stop::failed(format!("the answer cannot be written as JSON: {error}")))?;
        self.text(&format!("{text}\n"))
    }
}

/// <https://no-color.org>
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Colours, where somebody sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    pub(super) fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(super) fn doubtful(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A table without lines, so that it can be cut by `awk` and pasted into a ticket.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(head);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // Blanks at the end of a line are in the way of who compares.
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Text that somebody wrote into the database, without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { char.escape_default().to_string() } else { char.to_string() })
        .collect()
}

/// A time as JSON has it, in UTC.
pub(super) fn instant(time: SystemTime) -> String {
    // What humantime can write: the years 1970 to 9999.
    let writable = UNIX_EPOCH..=UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    if writable.contains(&time) { humantime::format_rfc3339_micros(time).to_string() } else { format!("{time:?}") }
}
