//! The command line: what an operator asks of the handlers and of their keys.
//!
//! It is a module and not a program, since only your own program knows your handlers. Mounted as a whole:
//!
//! ```no_run
//! use std::process::ExitCode;
//! # mod handlers {}
//!
//! #[tokio::main]
//! async fn main() -> ExitCode {
//!     // Lazily, so that `--help` and `handlers` need no database, and one that is down has its exit code.
//!     let pool = sqlx::SqlitePool::connect_lazy("sqlite:app.db").expect("an address that can be read");
//!     idem_runtime::cli::run(pool).await
//! }
//! ```
//!
//! Or below a command of your own, as [`Command`] shows.
//!
//! `docs/cli.md` has the commands, the fields of `--json` and the exit codes:
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done, and nothing to report |
//! | 1 | the answer is no: not found, findings, a catalog that has drifted |
//! | 2 | wrong usage; nothing was done |
//! | 3 | the database cannot be reached |
//! | 4 | refused: the tables or the handlers do not fit, the database is read-only, nobody confirmed |
//! | 5 | failed: the database refused a statement, or a file could not be read or written |

mod catalog;
mod doctor;
mod handlers;
mod migrate;
mod opt;
mod output;
mod show;
mod stop;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use sqlx::Pool;

use crate::engine::Engine;
use crate::registry::Registry;
use crate::store::Store;

use opt::{Action, Program};
use output::Output;
use stop::Stop;

pub use opt::Command;

/// What the commands work on: a pool or an engine.
///
/// A pool is enough. `migrate` needs no more, and an engine cannot start before it was run; the others start one.
#[derive(Debug)]
pub struct Target<S: Store>(Source<S>);

#[derive(Debug)]
enum Source<S: Store> {
    Pool(Pool<S>),
    Engine(Engine<S>),
}

impl<S: Store> From<Pool<S>> for Target<S> {
    fn from(pool: Pool<S>) -> Self {
        Self(Source::Pool(pool))
    }
}

impl<S: Store> From<Engine<S>> for Target<S> {
    fn from(engine: Engine<S>) -> Self {
        Self(Source::Engine(engine))
    }
}

impl<S: Store> Target<S> {
    fn pool(&self) -> &Pool<S> {
        match &self.0 {
            Source::Pool(pool) => pool,
            Source::Engine(engine) => engine.pool(),
        }
    }

    fn registry(&self) -> Result<Registry, Stop> {
        match &self.0 {
            Source::Pool(_) => Ok(Registry::load()?),
            Source::Engine(engine) => Ok(engine.registry().clone()),
        }
    }

    async fn engine(&self) -> Result<Engine<S>, Stop> {
        match &self.0 {
            Source::Pool(pool) => Ok(Engine::start(pool.clone()).await?),
            Source::Engine(engine) => Ok(engine.clone()),
        }
    }
}

/// Runs the command that the process was started with, and prints what it finds.
///
/// Takes a pool, best one that [connects lazily](Pool::connect_lazy_with), or an engine that has started.
///
/// # Cancel safety
///
/// As safe as the command: a migration that is cut off may have to be finished by hand on MySQL. All others can be run
/// again.
pub async fn run<S: Store>(target: impl Into<Target<S>>) -> ExitCode {
    run_from(target, std::env::args_os()).await
}

/// The same as [`run`] with arguments of one's own, the first of which is the program's name.
///
/// # Cancel safety
///
/// As for [`run`].
pub async fn run_from<S: Store, A>(target: impl Into<Target<S>>, args: A) -> ExitCode
where
    A: IntoIterator<Item: Into<OsString> + Clone>,
{
    match Program::try_parse_from(args) {
        Ok(program) => program.command.run(target).await,
        Err(error) => {
            // Help goes to standard output with 0, wrong usage to standard error with 2; if neither can be written,
            // nobody reads it.
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(stop::Exit::Usage as u8))
        }
    }
}

/// Says on standard error what is wrong with your program's own arguments, and gives the exit code of wrong usage.
///
/// For what has to be read before a [`Command`] can run, such as the database's address.
#[must_use]
pub fn misused(what: impl std::fmt::Display) -> ExitCode {
    ExitCode::from(Output::new(false).stop("", &Stop::usage(what.to_string())) as u8)
}

impl Command {
    /// Runs the command, and prints what it finds.
    ///
    /// # Cancel safety
    ///
    /// As for [`run`].
    pub async fn run<S: Store>(self, target: impl Into<Target<S>>) -> ExitCode {
        let output = Output::new(self.json);
        let name = self.action.name();
        let exit = match self.action.run(&target.into(), &output).await {
            Ok(exit) => exit,
            Err(stop) => output.stop(name, &stop),
        };
        ExitCode::from(exit as u8)
    }
}

impl Action {
    async fn run<S: Store>(self, target: &Target<S>, output: &Output) -> Result<stop::Exit, Stop> {
        match self {
            Self::Migrate(options) => output.print(&migrate::run(target, &options).await?),
            Self::Handlers => output.print(&handlers::run(&target.registry()?)),
            Self::Catalog(options) => catalog::run(target, &options, output).await,
            Self::Show(options) => output.print(&show::run(target, &options).await?),
            Self::Doctor => output.print(&doctor::run(target).await?),
        }
    }
}
