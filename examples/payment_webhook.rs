//! A payment provider sends "payment approved" to a web server, whose handler is slower than the provider is patient.
//! Each payment is credited once.
//!
//! ```text
//! cargo run --example payment_webhook -- --handler-delay 8000 --demo                  # a provider that gives up after 5 s
//! cargo run --example payment_webhook -- --handler-delay 8000 --demo --mode accept    # stored and answered at once
//! cargo run --example payment_webhook -- --db credits.db --secret whsec_…             # for Stripe itself
//! ```
//!
//! It says where it listens; a browser shows the balances there, and each delivery as it is answered.
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

#[path = "http/client.rs"]
mod client;
#[path = "payment_webhook/demo.rs"]
mod demo;
#[path = "consume/event.rs"]
mod event;
#[path = "payment_webhook/pages.rs"]
mod pages;
#[path = "consume/report.rs"]
mod report;
#[path = "quickstart/stop.rs"]
#[expect(dead_code, reason = "whatever stops this program has a cause")]
mod stop;
#[path = "payment_webhook/witness.rs"]
mod witness;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::post_service;
use clap::{Parser, ValueEnum};
use idem_runtime::{Consumer, DatabaseQueue, Engine, Route, Signature, WebhookRoute, http_route, idempotent};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Sqlite, SqlitePool, Transaction};
use tokio::net::TcpListener;

use event::Event;
use stop::{Stop, stopped};
use witness::Witness;

/// How long the handler takes: whatever it is that takes eight seconds in a real one.
#[derive(Debug)]
struct Delay(Duration);

/// Counts the event and credits the account that was paid. Run twice, it would credit twice; the key prevents that.
#[idempotent(
    key = "event.id",
    retention = "35d",
    redelivery(retries = "3d", resent_by_hand = "30d"),
    name = "credit-account"
)]
async fn credit_account(tx: &mut Transaction<'_, Sqlite>, event: &Event, delay: &Delay) -> Result<(), sqlx::Error> {
    let count = "INSERT INTO event_count VALUES (?, 1) ON CONFLICT (kind) DO UPDATE SET events = events + 1";
    sqlx::query(count).bind(&event.kind).execute(&mut **tx).await?;
    tokio::time::sleep(delay.0).await;
    if let Some(payment) = &event.payment {
        let credit = "INSERT INTO account VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET cents = cents + excluded.cents";
        sqlx::query(credit).bind(&payment.account).bind(payment.cents).execute(&mut **tx).await?;
    }
    Ok(())
}

http_route! {
    /// Credits accounts before it answers.
    static REQUEST: WebhookRoute =
        WebhookRoute::new("stripe", "POST /webhook", "Stripe").runs::<Sqlite, credit_account>();

    /// Stores events before it answers; accounts are credited later.
    static ACCEPT: WebhookRoute =
        WebhookRoute::new("stripe-door", "POST /webhook", "Stripe").runs::<Sqlite, credit_account>().accept("35d");
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// The handler runs, then comes the answer
    Request,
    /// The event is stored, then comes the answer; the handler runs later
    Accept,
}

/// Receives payment webhooks, and credits each payment once.
#[derive(Debug, Parser)]
struct Options {
    /// Where to listen; with port 0 the system chooses one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The provider's signing secret
    #[arg(long, default_value = "whsec_test_secret")]
    secret: String,
    /// How many seconds a signature's time may be from now
    #[arg(long, value_name = "SECS", default_value_t = 300)]
    tolerance: u64,
    #[arg(long, default_value = "request")]
    mode: Mode,
    /// How long the handler takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    handler_delay: u64,
    /// The SQLite file of the balances; what the provider delivered is in FILE.inbox [default: fresh ones, removed at the end]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Be the provider as well: send payments, give up after five seconds, send them again
    #[arg(long)]
    demo: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    stop::exit(run(&Options::parse()).await)
}

async fn run(options: &Options) -> Result<(), Stop> {
    let folder =
        tempfile::tempdir().map_err(stopped("no folder for the database can be made; name a file with --db"))?;
    let db = options.db.clone().unwrap_or_else(|| folder.path().join("credits.db"));
    let mut inbox = db.clone().into_os_string();
    inbox.push(".inbox");
    let unusable = || format!("the database {} cannot be used", db.display());
    let credits = start(&db).await.map_err(stopped(unusable()))?;
    // SQLite has one writer, and a slow handler is it: the door of accept mode needs a file of its own.
    let inbox = start(Path::new(&inbox)).await.map_err(stopped(unusable()))?;

    let signature = Signature::stripe(&options.secret).map_err(stopped("--secret cannot be used"))?;
    let signature = signature.tolerance(Duration::from_secs(options.tolerance));
    // A short lease, so that the run after a crash does not wait long for what the dead process held.
    let queue =
        DatabaseQueue::new(inbox.pool(), "stripe").poll(Duration::from_millis(50)).lease(Duration::from_secs(2));
    let handler =
        || Route::<Sqlite, credit_account>::with_state(Arc::new(Delay(Duration::from_millis(options.handler_delay))));
    let (receiver, consuming) = match options.mode {
        Mode::Request => (REQUEST.applying(&credits, signature.clone()).route(handler()), None),
        Mode::Accept => {
            let consuming = Consumer::new(&credits, queue.clone()).route(handler()).start().await;
            let consuming = consuming.map_err(stopped("the consumer did not start"))?;
            (ACCEPT.accepting(&inbox, signature.clone(), queue), Some(consuming))
        }
    };
    let service = receiver.service().map_err(stopped("the webhook's route cannot be served"))?;
    let witness = Witness::new(inbox.pool(), signature).await.map_err(stopped(unusable()))?;
    let app = Router::new()
        .route("/webhook", post_service(service).layer(from_fn_with_state(witness.clone(), witness::observe)))
        .merge(pages::pages(credits.pool(), witness));

    let listening = TcpListener::bind(options.listen).await;
    let listener = listening.map_err(stopped(format_args!("{} cannot be listened on", options.listen)))?;
    let address = listener.local_addr().map_err(stopped("the address is not known"))?;
    eprintln!("listening on http://{address}");
    if options.demo {
        tokio::spawn(demo::pay(address, options.secret.clone()));
    }
    let interrupted = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    let served = axum::serve(listener, app).with_graceful_shutdown(interrupted).await;
    if let Some(consuming) = consuming {
        consuming.stop().await;
    }
    credits.pool().close().await;
    inbox.pool().close().await;
    served.map_err(stopped("the server stopped"))
}

/// Opens a database, creates what is not there yet, and starts an engine on it.
async fn start(db: &Path) -> Result<Engine<Sqlite>, Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new().filename(db).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    let tables = "CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT;
                  CREATE TABLE IF NOT EXISTS event_count (kind TEXT PRIMARY KEY, events INTEGER NOT NULL) STRICT;";
    sqlx::raw_sql(tables).execute(&pool).await?;
    idem_runtime::migrate(&pool).await?;
    // A delivery waits for the handler that works on the same event, rather than being refused at once.
    Ok(Engine::builder(pool).claim_wait(Duration::from_secs(12)).start().await?)
}
