//! The command line of a program's own handlers: what an operator asks, without SQL.
//!
//! ```text
//! cargo run --example ops -- handlers                       # no database is needed
//! cargo run --example quickstart -- --db credits.db         # 140 events, each with its key
//! cargo run --example ops -- --db sqlite:credits.db doctor
//! cargo run --example ops -- --db sqlite:credits.db show evt_1SoqvXB23hIh5i8WjL1OpIT3
//! ```

#[cfg_attr(feature = "databases", path = "ops/any_database.rs")]
#[cfg_attr(not(feature = "databases"), path = "ops/database.rs")]
mod database;
#[path = "ops/handlers.rs"]
mod handlers;

use std::process::ExitCode;

use clap::Parser;

/// Asks and mends what the example's handlers keep in a database.
#[derive(Debug, Parser)]
struct Options {
    /// The address of the database; PostgreSQL and MySQL need the feature `databases`
    #[arg(long, value_name = "URL", global = true, default_value = "sqlite:ops.db?mode=rwc")]
    db: String,
    /// All of the library's commands. As a variant of an enum of yours, they stand below a command of yours.
    #[command(flatten)]
    command: idem_runtime::cli::Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Options { db, command } = Options::parse();
    database::run(&db, command).await
}
