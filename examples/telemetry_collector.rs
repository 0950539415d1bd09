//! Readings of a sensor go into a chart at most once: a crash loses some, and the figures say how many.
//!
//! ```text
//! cargo run --example telemetry_collector                                # 500 readings, none is lost
//! cargo run --example telemetry_collector -- --db chart.db --crash 100   # dies while it stores a reading
//! cargo run --example telemetry_collector -- --db chart.db               # goes on; those that were in the air are lost
//! ```
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

#[path = "consume/die.rs"]
mod die;
#[path = "quickstart/stop.rs"]
mod stop;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clap::Parser;
use idem_runtime::{Consumer, DatabaseQueue, Engine, Incoming, Route, at_most_once};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Sqlite, SqlitePool};

use stop::{Stop, stopped};

/// One value of one sensor.
#[derive(Debug, Serialize, Deserialize)]
struct Reading {
    number: u32,
    celsius: f64,
}

/// Where readings end up.
struct Chart {
    pool: SqlitePool,
    crash: Option<u32>,
    begun: AtomicU32,
}

/// Draws a reading. Nobody wants to see an old one later, and the next one is a second away, so it is not worth a key.
#[at_most_once(
    reason = "a reading is worthless when it is late, and the next one comes within a second",
    loss = "the readings that were being stored when the process died: a gap in the chart"
)]
async fn draw(reading: &Reading, chart: &Chart) -> Result<(), sqlx::Error> {
    let number = chart.begun.fetch_add(1, Ordering::SeqCst) + 1;
    if chart.crash == Some(number) {
        eprintln!("crash: while reading {} is stored, which was acknowledged before", reading.number);
        die::die();
    }
    let insert = "INSERT INTO point VALUES (?, ?)";
    sqlx::query(insert).bind(reading.number).bind(reading.celsius).execute(&chart.pool).await.map(drop)
}

/// Collects readings of a sensor, at most once each.
#[derive(Debug, Parser)]
struct Options {
    /// The SQLite file to work on [default: a fresh one, removed at the end]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// How many readings the sensor sends
    #[arg(long, value_name = "N", default_value_t = 500)]
    readings: u32,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Kill the process while it stores its Nth reading
    #[arg(long, value_name = "N")]
    crash: Option<u32>,
}

/// What came of it. A reading is drawn at most once, so `sent` is `drawn` and `lost` together.
#[derive(Debug, Serialize)]
struct Report {
    sent: i64,
    drawn: i64,
    drawn_twice: i64,
    lost: i64,
}

#[tokio::main]
async fn main() -> ExitCode {
    stop::exit(run(&Options::parse()).await)
}

async fn run(options: &Options) -> Result<(), Stop> {
    if options.crash == Some(0) {
        return Err(Stop::new("readings are counted from 1"));
    }
    let folder =
        tempfile::tempdir().map_err(stopped("no folder for the database can be made; name a file with --db"))?;
    let db = options.db.clone().unwrap_or_else(|| folder.path().join("chart.db"));
    eprintln!("database: {}", db.display());
    let engine = start(&db).await.map_err(stopped(format_args!("the database {} cannot be used", db.display())))?;
    // Short, so that the run after a crash does not wait long for what the dead process held.
    let queue = DatabaseQueue::new(engine.pool(), "readings").lease(Duration::from_secs(2));
    send(&queue, engine.pool(), options.readings).await?;

    let chart = Chart { pool: engine.pool().clone(), crash: options.crash, begun: AtomicU32::new(0) };
    let route = Route::<Sqlite, draw>::with_state(Arc::new(chart));
    let consuming = Consumer::new(&engine, queue).route(route).start().await;
    let consuming = consuming.map_err(stopped("the consumer did not start"))?;
    consuming.until_settled().await;
    consuming.stop().await;

    let report = Report::read(engine.pool()).await.map_err(stopped("the figures cannot be read from the database"))?;
    engine.pool().close().await;
    let text = match options.json {
        true => serde_json::to_string_pretty(&report).map_err(stopped("the figures cannot be written as JSON"))?,
        false => format!("sent  {:>6}\ndrawn {:>6}\nlost  {:>6}", report.sent, report.drawn, report.lost),
    };
    writeln!(stdout(), "{text}").map_err(stopped("the figures cannot be printed"))
}

async fn start(db: &Path) -> Result<Engine<Sqlite>, Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new().filename(db).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    let tables = "CREATE TABLE IF NOT EXISTS point (number INTEGER NOT NULL, celsius REAL NOT NULL) STRICT;
                  CREATE TABLE IF NOT EXISTS sent (number INTEGER PRIMARY KEY) STRICT;";
    sqlx::raw_sql(tables).execute(&pool).await?;
    idem_runtime::migrate(&pool).await?;
    Ok(Engine::start(pool).await?)
}

/// The sensor. What it sends and its count are one transaction, so that each reading is sent once.
async fn send(queue: &DatabaseQueue<Sqlite>, pool: &SqlitePool, readings: u32) -> Result<(), Stop> {
    let unsent = "the readings cannot be sent";
    let mut tx = pool.begin().await.map_err(stopped(unsent))?;
    let last: Option<u32> =
        sqlx::query_scalar("SELECT max(number) FROM sent").fetch_one(&mut *tx).await.map_err(stopped(unsent))?;
    for number in last.unwrap_or(0) + 1..=readings {
        let reading = Reading { number, celsius: 20.0 + f64::from(number % 7) };
        let body = serde_json::to_vec(&reading).map_err(stopped(unsent))?;
        queue.enqueue_in(&mut tx, &Incoming::new(body)).await.map_err(stopped(unsent))?;
        let note = sqlx::query("INSERT INTO sent VALUES (?)").bind(number).execute(&mut *tx).await;
        note.map_err(stopped(unsent))?;
    }
    tx.commit().await.map_err(stopped(unsent))
}

impl Report {
    async fn read(pool: &SqlitePool) -> Result<Self, sqlx::Error> {
        let figures = "SELECT (SELECT count(*) FROM sent), count(DISTINCT number), count(*) - count(DISTINCT number) \
                       FROM point";
        let (sent, drawn, drawn_twice): (i64, i64, i64) = sqlx::query_as(figures).fetch_one(pool).await?;
        Ok(Self { sent, drawn, drawn_twice, lost: sent - drawn })
    }
}
