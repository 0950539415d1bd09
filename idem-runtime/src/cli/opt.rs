//! The arguments, as clap reads them. The comments are the help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::retention::Retention;

/// The commands as a part of your own command line.
///
/// ```
/// use clap::Parser;
///
/// #[derive(Parser)]
/// struct Options {
///     #[command(subcommand)]
///     command: Mine,
/// }
///
/// #[derive(clap::Subcommand)]
/// enum Mine {
///     /// Consumes until it is stopped
///     Serve,
///     /// Keys, handlers and their catalog
///     Idem(idem_runtime::cli::Command),
/// }
///
/// let options = Options::parse_from(["app", "idem", "handlers"]);
/// if let Mine::Idem(command) = options.command {
///     // … `command.run(pool).await`, which gives an `ExitCode`
/// }
/// ```
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Command {
    /// Prints one JSON document; its fields are versioned, and stand in docs/cli.md
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) action: Action,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and nothing to report
  1  the answer is no: not found, findings, a catalog that has drifted
  2  wrong usage; nothing was done
  3  the database cannot be reached
  4  refused: tables or handlers do not fit, read-only database, a hold in force, nobody confirmed
  5  failed: the database refused a statement, or a file cannot be read or written";

/// Handlers that apply each event once: their keys, their catalog, their purge
#[derive(Debug, Parser)]
#[command(name = "idem", version)]
pub(super) struct Program {
    #[command(flatten)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Creates the tables, or brings them up to this version
    Migrate(Migrate),
    /// Lists the handlers of this program
    Handlers,
    /// Writes or checks the documentation of the handlers
    Catalog(Catalog),
    /// Deletes the keys that are older than their handler's retention
    Purge(Purge),
    /// Keeps every node from purging for a time, for instance during a replay
    Hold(Hold),
    /// Ends a hold before it expires
    Release(Release),
    /// Lists the holds that are in force
    Holds,
    /// Says whether an event was applied, when, and by which handler
    Show(Show),
    /// Deletes one key, so that its event can be applied again; who, when and why is written down
    Forget(Forget),
    /// Looks for what is wrong, and says what to do about it
    Doctor,
}

impl Action {
    /// The command's name, as it is typed and as it stands in the JSON.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Migrate(_) => "migrate",
            Self::Handlers => "handlers",
            Self::Catalog(_) => "catalog",
            Self::Purge(_) => "purge",
            Self::Hold(_) => "hold",
            Self::Release(_) => "release",
            Self::Holds => "holds",
            Self::Show(_) => "show",
            Self::Forget(_) => "forget",
            Self::Doctor => "doctor",
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// Changes nothing, and exits with 1 when there is something to migrate
    #[arg(long)]
    pub(super) check: bool,
}

#[derive(Debug, Args)]
pub(super) struct Catalog {
    /// The form [default: markdown]
    #[arg(long, value_enum)]
    pub(super) format: Option<Format>,
    /// Writes to this file; Markdown only if no unacknowledged change in it forgets keys
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub(super) output: Option<PathBuf>,
    /// Adds what the database says: keys, their age, how far the purge is behind, the storage to expect
    #[arg(long, conflicts_with = "check")]
    pub(super) figures: bool,
    /// Compares this committed Markdown with the code, and exits with 1 when it has drifted
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(super) check: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// To be committed, and compared with --check
    Markdown,
    /// With versioned fields, see docs/catalog.md
    Json,
    /// One page that needs nothing else
    Html,
}

#[derive(Debug, Args)]
pub(super) struct Purge {
    /// Counts what would go, and deletes nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// The keys of this handler alone
    #[arg(long, value_name = "NAME", value_parser = handler_name)]
    pub(super) handler: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Author {
    /// Who does it [default: $USER, or else the user of this process]
    #[arg(long, value_name = "NAME", value_parser = words)]
    pub(super) author: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Hold {
    /// Why; whoever finds the purge held reads it
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(super) reason: String,
    /// For how long at most, such as 90m, 6h or 2d
    #[arg(long = "for", value_name = "LENGTH")]
    pub(super) length: Retention,
    #[command(flatten)]
    pub(super) author: Author,
}

#[derive(Debug, Args)]
pub(super) struct Release {
    /// The hold, as `hold` and `holds` name it
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) author: Author,
}

const KEY_HELP: &str = "\
The key, part by part, in the order of the handler's `key(…)`. A part is text, unless its type stands before it:
  i:7      whole number       u:67e5…  UUID
  b:true   truth value        x:6501   bytes, in hexadecimal
  c:x      single character   s:i:7    text, whatever it looks like
Or one argument, as it stands in the table: 1/s:ord_1/i:7";

#[derive(Debug, Args)]
pub(super) struct EventKey {
    /// The key's parts, or its stored form (see --help)
    #[arg(value_name = "KEY", required = true, long_help = KEY_HELP)]
    pub(super) parts: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    pub(super) key: EventKey,
    /// Asks this handler alone, whether this program knows it or not
    #[arg(long, value_name = "NAME", value_parser = handler_name)]
    pub(super) handler: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Forget {
    #[command(flatten)]
    pub(super) key: EventKey,
    /// Whose key
    #[arg(long, value_name = "NAME", value_parser = handler_name)]
    pub(super) handler: String,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(super) reason: String,
    #[command(flatten)]
    pub(super) author: Author,
    /// Does not ask; needed where there is no terminal
    #[arg(long)]
    pub(super) yes: bool,
}

fn words(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("it is empty, and somebody will want to read it") } else { Ok(text.to_owned()) }
}

/// What the attribute takes for a name: nothing else can own a key.
fn handler_name(text: &str) -> Result<String, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    if (1..=128).contains(&text.len()) && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("a handler's name is 1 to 128 of A-Z, a-z, 0-9 and ._:/-")
    }
}
