//! Webhook deliveries credit accounts, and each event counts once: in spite of redeliveries, disorder and a crash.
//!
//! ```text
//! cargo run --example quickstart                                  # 179 deliveries of 140 events, then a table
//! cargo run --example quickstart -- --db credits.db --crash 100   # dies after the commit, before the acknowledgement
//! cargo run --example quickstart -- --db credits.db               # goes on: the figures are the same
//! ```
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

#[path = "quickstart/broker.rs"]
mod broker;
#[path = "quickstart/deliveries.rs"]
mod deliveries;
#[path = "quickstart/report.rs"]
mod report;
#[path = "quickstart/stop.rs"]
mod stop;

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io, process};

use clap::Parser;
use idem_runtime::{Engine, idempotent};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Sqlite, SqlitePool, Transaction};

use broker::Broker;
use deliveries::Delivery;
use report::Report;
use stop::{Stop, stopped};

/// What the handler needs of a Stripe event.
#[derive(Debug)]
struct Event {
    /// The same in every delivery of the event.
    id: String,
    kind: String,
    payment: Option<Payment>,
}

/// What an event of the kind `payment_intent.succeeded` says.
#[derive(Debug)]
struct Payment {
    account: String,
    cents: i64,
}

/// Counts the event and credits the account that was paid.
///
/// Run twice, it would credit twice; the key is what prevents that. Keys are kept for longer than Stripe can deliver an
/// event again: three days of retries, and thirty days in which somebody can resend it by hand.
#[idempotent(
    key = "event.id",
    retention = "35d",
    redelivery(retries = "3d", resent_by_hand = "30d"),
    name = "credit-account"
)]
async fn credit_account(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO event_count (kind, events) VALUES (?, 1) ON CONFLICT (kind) DO UPDATE SET events = events + 1",
    )
    .bind(&event.kind)
    .execute(&mut **tx)
    .await?;
    if let Some(payment) = &event.payment {
        sqlx::query(
            "INSERT INTO account (id, cents) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET cents = cents + excluded.cents",
        )
        .bind(&payment.account)
        .bind(payment.cents)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Takes what the broker has not had acknowledged yet, one delivery after the other.
async fn consume(
    engine: &Engine<Sqlite>,
    broker: &Broker,
    deliveries: &[Delivery],
    crash: Option<u32>,
) -> Result<(), Stop> {
    for delivery in broker.unacknowledged(deliveries).await? {
        broker.hand_out(delivery).await?;
        // Applied or Duplicate: either way the effect is committed. A failure ends the run without an acknowledgement.
        credit_account(engine, &delivery.event)
            .await
            .map_err(stopped(format_args!("delivery {} was not acknowledged", delivery.number)))?;
        if crash == Some(delivery.number) {
            eprintln!(
                "crash: delivery {} is committed, not acknowledged; run again on this --db to go on",
                delivery.number
            );
            die();
        }
        broker.acknowledge(delivery).await?;
    }
    Ok(())
}

/// Applies webhook deliveries once, and shows what a handler without a key would have done.
#[derive(Debug, Parser)]
struct Options {
    /// The SQLite file to work on, one for each file of deliveries [default: a fresh one, removed at the end]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// The deliveries, one JSON object a line
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stripe-deliveries.ndjson"))]
    file: PathBuf,
    /// Print the figures as JSON, with the keys of `stripe-deliveries.expected.json`
    #[arg(long)]
    json: bool,
    /// Kill the process between the commit and the acknowledgement of delivery N
    #[arg(long, value_name = "N")]
    crash: Option<u32>,
}

#[tokio::main]
async fn main() -> ExitCode {
    stop::exit(run(&Options::parse()).await)
}

async fn run(options: &Options) -> Result<(), Stop> {
    let deliveries = deliveries::read(&options.file)?;
    if let Some(number) = options.crash
        && !deliveries.iter().any(|delivery| delivery.number == number)
    {
        return Err(Stop::new(format_args!("there is no delivery {number} to crash at in {}", options.file.display())));
    }
    if let Some(db) = &options.db {
        eprintln!("database: {}", db.display());
        return run_on(db, &deliveries, options).await;
    }
    let folder = fresh_folder().map_err(stopped("no folder for the database can be made; name a file with --db"))?;
    let db = folder.join("quickstart.db");
    eprintln!("database: {} (removed at the end)", db.display());
    let done = run_on(&db, &deliveries, options).await;
    let removed = fs::remove_dir_all(&folder).map_err(stopped(format_args!("{} stays behind", folder.display())));
    done.and(removed)
}

async fn run_on(db: &Path, deliveries: &[Delivery], options: &Options) -> Result<(), Stop> {
    let engine = start(db).await.map_err(stopped(format_args!("the database {} cannot be used", db.display())))?;
    let pool = engine.pool();
    consume(&engine, &Broker::new(pool.clone()), deliveries, options.crash).await?;
    if let Some(number) = options.crash {
        eprintln!("no crash: delivery {number} had been acknowledged in an earlier run");
    }
    let report = Report::read(pool, deliveries).await?;
    pool.close().await;
    let text = if options.json { report.to_json()? } else { report.to_string() };
    writeln!(io::stdout(), "{text}").map_err(stopped("the figures cannot be printed"))
}

/// Opens the database, creates what is not there yet, and starts the engine on it.
async fn start(db: &Path) -> Result<Engine<Sqlite>, Box<dyn Error>> {
    let options = SqliteConnectOptions::new().filename(db).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(
        "CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT;
         CREATE TABLE IF NOT EXISTS event_count (kind TEXT PRIMARY KEY, events INTEGER NOT NULL) STRICT;",
    )
    .execute(&pool)
    .await?;
    sqlx::raw_sql(broker::TABLE).execute(&pool).await?;
    idem_runtime::migrate(&pool).await?;
    Ok(Engine::start(pool).await?)
}

/// A folder of this process's own. A crash leaves it behind, so the number can be taken.
fn fresh_folder() -> io::Result<PathBuf> {
    let mut attempt = 0;
    loop {
        let folder = env::temp_dir().join(format!("idem-quickstart-{}-{attempt}", process::id()));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            created => return created.map(|()| folder),
        }
    }
}

/// Ends the process at once, with nothing flushed, closed or rolled back: SIGKILL where there is one.
fn die() -> ! {
    // `kill` is a part of every shell, but not a program of its own on every system.
    let kill = format!("kill -9 {}", process::id());
    if cfg!(unix) && process::Command::new("sh").args(["-c", &kill]).status().is_ok_and(|status| status.success()) {
        loop {
            std::thread::park();
        }
    }
    process::abort()
}
