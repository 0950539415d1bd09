//! Opens the database that an address names: SQLite, PostgreSQL, MySQL or MariaDB.

use std::process::ExitCode;
use std::time::Duration;

use idem_runtime::Store;
use idem_runtime::cli::{Command, misused};
use sqlx::pool::PoolOptions;
use sqlx::{MySql, Postgres, Sqlite};

/// Lazily, so that a database that is down is the command's to report, and waits no longer than an operator does.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(url: &str, command: Command) -> ExitCode {
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => run_on::<Postgres>(url, command).await,
        Some("mysql" | "mariadb") => run_on::<MySql>(url, command).await,
        Some("sqlite") => run_on::<Sqlite>(url, command).await,
        _ => misused("the address of the database begins with `sqlite:`, `postgres:` or `mysql:`"),
    }
}

async fn run_on<S: Store>(url: &str, command: Command) -> ExitCode {
    match PoolOptions::<S>::new().acquire_timeout(PATIENCE).connect_lazy(url) {
        Ok(pool) => command.run(pool).await,
        Err(error) => misused(format!("the address of the database cannot be read: {error}")),
    }
}
