//! Opens the database that an address names: SQLite, in a build that needs nothing else.

use std::process::ExitCode;
use std::time::Duration;

use idem_runtime::cli::{Command, misused};
use sqlx::sqlite::SqlitePoolOptions;

/// Lazily, so that a database that is down is the command's to report, and waits no longer than an operator does.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(url: &str, command: Command) -> ExitCode {
    // sqlx takes whatever has no scheme of its own for the name of a file.
    if !url.starts_with("sqlite:") {
        return misused(
            "the address of the database begins with `sqlite:`; for others, build with `--features databases`",
        );
    }
    match SqlitePoolOptions::new().acquire_timeout(PATIENCE).connect_lazy(url) {
        Ok(pool) => command.run(pool).await,
        Err(error) => misused(format!("the address of the database cannot be read: {error}")),
    }
}
