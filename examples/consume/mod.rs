//! What is the same whichever broker the deliveries go through: the handler, the run, and the figures.
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

mod crash;
mod die;
mod event;
mod report;
#[path = "../quickstart/stop.rs"]
mod stop;

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use idem_runtime::{Adapter, Consumer, Engine, Incoming, idempotent};
use serde::Deserialize;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Sqlite, SqlitePool, Transaction};

use crash::Crashing;
use event::Event;
use report::Report;

pub(crate) use stop::{Stop, stopped};

/// Counts the event and credits the account that was paid. Run twice, it would credit twice; the key prevents that.
#[idempotent(
    key = "event.id",
    retention = "35d",
    redelivery(retries = "3d", resent_by_hand = "30d"),
    name = "credit-account"
)]
async fn credit_account(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> Result<(), sqlx::Error> {
    let count = "INSERT INTO event_count VALUES (?, 1) ON CONFLICT (kind) DO UPDATE SET events = events + 1";
    sqlx::query(count).bind(&event.kind).execute(&mut **tx).await?;
    if let Some(payment) = &event.payment {
        let credit = "INSERT INTO account VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET cents = cents + excluded.cents";
        sqlx::query(credit).bind(&payment.account).bind(payment.cents).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Where the sender puts the deliveries, and the consumer takes them.
pub(crate) trait Broker: Sized {
    type Adapter: Adapter;

    /// Makes the queue, unless it is there.
    async fn open(engine: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop>;

    /// Returns when the broker has it.
    async fn publish(&self, message: &Incoming) -> Result<(), Stop>;

    fn adapter(self) -> Self::Adapter;
}

/// Sends webhook deliveries through a broker, and applies each event once.
#[derive(Debug, Parser)]
struct Options {
    /// The SQLite file to work on [default: a fresh one, removed at the end]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// The deliveries, one JSON object a line
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stripe-deliveries.ndjson"))]
    file: PathBuf,
    /// The queue, topic or stream that the deliveries go through
    #[arg(long, value_name = "NAME", default_value = "idem-stripe")]
    queue: String,
    /// As many deliveries share a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Print the figures as JSON, with the keys of `stripe-deliveries.expected.json`
    #[arg(long)]
    json: bool,
    /// Kill the process between the commit and the acknowledgement of the Nth delivery that it handles
    #[arg(long, value_name = "N")]
    crash: Option<u32>,
}

pub(crate) async fn main<B: Broker>() -> ExitCode {
    stop::exit(run::<B>(&Options::parse()).await)
}

async fn run<B: Broker>(options: &Options) -> Result<(), Stop> {
    let bodies = read(&options.file)?;
    let folder =
        tempfile::tempdir().map_err(stopped("no folder for the database can be made; name a file with --db"))?;
    let db = options.db.clone().unwrap_or_else(|| folder.path().join("credits.db"));
    let deliveries = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
    if let Some(number) = options.crash.filter(|number| !(1..=deliveries).contains(number)) {
        return Err(Stop::new(format_args!("there is no delivery {number} to crash at in {}", options.file.display())));
    }
    eprintln!("database: {}", db.display());
    let engine = start(&db).await.map_err(stopped(format_args!("the database {} cannot be used", db.display())))?;
    let broker = B::open(&engine, &options.queue).await?;
    publish(&broker, engine.pool(), &bodies).await?;

    let adapter = Crashing::new(broker.adapter(), options.crash);
    let consuming = Consumer::new(&engine, adapter).handler::<credit_account>().batch(options.batch).start().await;
    let consuming = consuming.map_err(stopped("the consumer did not start"))?;
    consuming.until_settled().await;
    consuming.stop().await;

    let sent = sqlx::query_scalar("SELECT count(*) FROM sent").fetch_one(engine.pool()).await;
    let payments = bodies.iter().filter_map(|body| serde_json::from_str::<Event>(body).ok()?.payment);
    let sent = sent.map_err(stopped("what was sent cannot be counted"))?;
    let report = Report::read(engine.pool(), sent, payments.map(|payment| payment.cents).sum()).await?;
    engine.pool().close().await;
    let text = if options.json { as_json(&report)? } else { report.to_string() };
    writeln!(stdout(), "{text}").map_err(stopped("the figures cannot be printed"))
}

fn as_json(report: &Report) -> Result<String, Stop> {
    serde_json::to_string_pretty(report).map_err(stopped("the figures cannot be written as JSON"))
}

/// Opens the database, creates what is not there yet, and starts the engine on it.
async fn start(db: &Path) -> Result<Engine<Sqlite>, Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new().filename(db).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    let tables = "CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT;
                  CREATE TABLE IF NOT EXISTS event_count (kind TEXT PRIMARY KEY, events INTEGER NOT NULL) STRICT;
                  CREATE TABLE IF NOT EXISTS sent (number INTEGER PRIMARY KEY) STRICT;";
    sqlx::raw_sql(tables).execute(&pool).await?;
    idem_runtime::migrate(&pool).await?;
    Ok(Engine::start(pool).await?)
}

/// Sends what was not sent yet. A sender that dies in between sends the last one again.
async fn publish(broker: &impl Broker, pool: &SqlitePool, bodies: &[String]) -> Result<(), Stop> {
    let noted = stopped("what was sent cannot be noted");
    let last: i64 = match sqlx::query_scalar("SELECT coalesce(max(number), 0) FROM sent").fetch_one(pool).await {
        Ok(last) => last,
        Err(error) => return Err(noted(error)),
    };
    for (number, body) in (1_i64..).zip(bodies).filter(|(number, _)| *number > last) {
        broker.publish(&Incoming::new(body.as_str())).await?;
        let note = sqlx::query("INSERT INTO sent VALUES (?)").bind(number).execute(pool).await;
        note.map_err(stopped("what was sent cannot be noted"))?;
    }
    Ok(())
}

/// The bodies of the deliveries, in the order in which the sender made them.
fn read(file: &Path) -> Result<Vec<String>, Stop> {
    #[derive(Deserialize)]
    struct Request {
        body: String,
    }

    let unreadable = || format!("the deliveries in {} cannot be read", file.display());
    let lines = BufReader::new(File::open(file).map_err(stopped(unreadable()))?).lines();
    let mut bodies = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let line = line.map_err(stopped(unreadable()))?;
        if !line.trim().is_empty() {
            let place = format!("{}, line {number} is not a delivery", file.display());
            let request: Request = serde_json::from_str(&line).map_err(stopped(place))?;
            bodies.push(request.body);
        }
    }
    Ok(bodies)
}
