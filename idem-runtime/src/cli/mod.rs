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
//! | 4 | refused: the tables or the handlers do not fit, the database is read-only, a hold is in force, nobody confirmed |
//! | 5 | failed: the database refused a statement, or a file could not be read or written |

mod author;
mod catalog;
mod doctor;
mod forget;
mod handlers;
mod hold;
mod migrate;
mod opt;
mod output;
mod purge;
mod show;
mod stop;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use sqlx::Pool;
use sqlx::pool::PoolConnection;

use crate::engine::{Engine, EngineBuilder, Start};
use crate::registry::Registry;
use crate::store::{Store, schema};

use opt::{Action, Program};
use output::Output;
use stop::Stop;

pub use opt::Command;

/// What the commands work on: a pool, an engine that is configured, or one that has started.
///
/// A pool is enough: `migrate` needs no more, and an engine cannot start before it was run. The others start one, which
/// does not write down that this program is a node. Where the application has a
/// [name](EngineBuilder::application), give `Engine::builder(pool).application(…)`.
#[derive(Debug)]
pub struct Target<S: Store>(Source<S>);

#[derive(Debug)]
enum Source<S: Store> {
    Builder(EngineBuilder<S>),
    Engine(Engine<S>),
}

impl<S: Store> From<Pool<S>> for Target<S> {
    fn from(pool: Pool<S>) -> Self {
        Self(Source::Builder(Engine::builder(pool)))
    }
}

impl<S: Store> From<EngineBuilder<S>> for Target<S> {
    fn from(builder: EngineBuilder<S>) -> Self {
        Self(Source::Builder(builder))
    }
}

impl<S: Store> From<Engine<S>> for Target<S> {
    fn from(engine: Engine<S>) -> Self {
        Self(Source::Engine(engine))
    }
}

impl<S: Store> Target<S> {
    fn registry(&self) -> Result<Registry, Stop> {
        match &self.0 {
            Source::Builder(_) => Ok(Registry::load()?),
            Source::Engine(engine) => Ok(engine.registry().clone()),
        }
    }

    fn application(&self) -> &str {
        match &self.0 {
            Source::Builder(builder) => builder.name(),
            Source::Engine(engine) => engine.application(),
        }
    }

    fn pool(&self) -> &Pool<S> {
        match &self.0 {
            Source::Builder(builder) => builder.pool(),
            Source::Engine(engine) => engine.pool(),
        }
    }

    async fn connection(&self) -> Result<PoolConnection<S>, Stop> {
        connection(self.pool()).await
    }

    async fn engine(self) -> Result<Engine<S>, Stop> {
        match self.0 {
            Source::Builder(builder) => Ok(builder.start_as(Start::Visitor).await?),
            Source::Engine(engine) => Ok(engine),
        }
    }
}

async fn connection<S: Store>(pool: &Pool<S>) -> Result<PoolConnection<S>, Stop> {
    Ok(pool.acquire().await.map_err(schema::connection_error::<S>)?)
}

/// Runs the command that the process was started with, and prints what it finds.
///
/// Takes a pool, best one that [connects lazily](Pool::connect_lazy_with), an [`EngineBuilder`] or an [`Engine`].
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
        let exit = match self.action.run(target.into(), &output).await {
            Ok(exit) => exit,
            Err(stop) => output.stop(name, &stop),
        };
        ExitCode::from(exit as u8)
    }
}

impl Action {
    async fn run<S: Store>(self, target: Target<S>, output: &Output) -> Result<stop::Exit, Stop> {
        match self {
            Self::Migrate(options) => output.print(&migrate::run(target, &options).await?),
            Self::Handlers => output.print(&handlers::run(&target.registry()?)),
            Self::Catalog(options) => catalog::run(target, &options, output).await,
            Self::Purge(options) => purge::run(&target.engine().await?, &options, output).await,
            Self::Hold(options) => output.print(&hold::place(&target.engine().await?, options).await?),
            Self::Release(options) => output.print(&hold::release(&target.engine().await?, options).await?),
            Self::Holds => output.print(&hold::list(&target.engine().await?).await?),
            Self::Show(options) => {
                let key = show::key(&options.key)?;
                output.print(&show::run(&target.engine().await?, &options, &key).await?)
            }
            Self::Forget(options) => {
                let key = show::key(&options.key)?;
                output.print(&forget::run(&target.engine().await?, options, &key, output).await?)
            }
            Self::Doctor => output.print(&doctor::run(target).await?),
        }
    }
}
