//! An API whose clients retry with an `Idempotency-Key`: each payment is created once, and each client gets its answer.
//!
//! ```text
//! cargo run --example payments_api                                            # server and clients, on a bad line
//! cargo run --example payments_api -- --listen 127.0.0.1:8080 --db pay.db     # the server alone
//! ```
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

#[path = "http/client.rs"]
mod client;
#[path = "payments_api/clients.rs"]
mod clients;
#[path = "quickstart/stop.rs"]
#[expect(dead_code, reason = "whatever stops this program has a cause")]
mod stop;

use std::error::Error;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Parser;
use idem_runtime::{Engine, KeyedRoute, KeyedTx, http_route};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Sqlite, SqlitePool};
use tokio::net::TcpListener;

use stop::{Stop, stopped};

http_route! {
    /// Creates a payment.
    static CREATE_PAYMENT: KeyedRoute =
        KeyedRoute::new("create-payment", "POST /payments").retention("24h").scope("bearer")
            // A client that is too early waits for the answer, rather than asking again.
            .wait_in_flight(Duration::from_secs(10));
}

#[derive(Debug, Deserialize)]
struct Wanted {
    cents: u32,
}

#[derive(Debug, Serialize)]
struct Payment {
    id: i64,
    cents: u32,
}

type Created = (StatusCode, [(HeaderName, String); 1], Json<Payment>);

/// Run twice it would create two payments; the layer around it prevents that, and commits the answer with the payment.
async fn create_payment(mut tx: KeyedTx<Sqlite>, Json(wanted): Json<Wanted>) -> Result<Created, StatusCode> {
    let insert = sqlx::query_scalar("INSERT INTO payment (cents) VALUES (?) RETURNING id").bind(wanted.cents);
    let id = insert.fetch_one(&mut *tx).await.map_err(unavailable)?;
    let location = [(LOCATION, format!("/payments/{id}"))];
    Ok((StatusCode::CREATED, location, Json(Payment { id, cents: wanted.cents })))
}

async fn figures(State(pool): State<SqlitePool>) -> Result<Json<Value>, StatusCode> {
    let totals = "SELECT count(*), coalesce(sum(cents), 0) FROM payment";
    let (payments, cents): (i64, i64) = sqlx::query_as(totals).fetch_one(&pool).await.map_err(unavailable)?;
    Ok(Json(json!({ "payments": payments, "cents": cents })))
}

/// Below 500 would be the final answer of the key; this one says that it is worth sending again.
#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unavailable(error: sqlx::Error) -> StatusCode {
    eprintln!("the database: {error}");
    StatusCode::SERVICE_UNAVAILABLE
}

/// A real API authenticates; here whoever names himself is believed.
fn caller(parts: &Parts) -> Option<String> {
    let bearer = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    (!bearer.is_empty()).then(|| bearer.to_owned())
}

/// Creates payments, each once, however often its request is sent.
#[derive(Debug, Parser)]
struct Options {
    /// Serve there, and send nothing
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// The SQLite file to work on [default: a fresh one, removed at the end]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    stop::exit(run(&Options::parse()).await)
}

async fn run(options: &Options) -> Result<(), Stop> {
    let folder =
        tempfile::tempdir().map_err(stopped("no folder for the database can be made; name a file with --db"))?;
    let db = options.db.clone().unwrap_or_else(|| folder.path().join("payments.db"));
    let engine = start(&db).await.map_err(stopped(format_args!("the database {} cannot be used", db.display())))?;
    let layer = CREATE_PAYMENT.layer(&engine, caller).map_err(stopped("the route cannot be served"))?;
    let payments = post(create_payment).layer(layer).merge(get(figures));
    let app = Router::new().route("/payments", payments).with_state(engine.pool().clone());

    let listen = options.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let listening = TcpListener::bind(listen).await;
    let listener = listening.map_err(stopped(format_args!("{listen} cannot be listened on")))?;
    let address = listener.local_addr().map_err(stopped("the address is not known"))?;
    eprintln!("listening on http://{address}");
    let server = axum::serve(listener, app);
    if options.listen.is_some() {
        let interrupted = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
        server.with_graceful_shutdown(interrupted).await.map_err(stopped("the server stopped"))?;
    } else {
        let serving = tokio::spawn(async { server.await });
        let report =
            clients::pay(address).await.map_err(|error| stopped::<Box<dyn Error>>("a client gave up")(error))?;
        serving.abort();
        writeln!(stdout(), "{report}").map_err(stopped("the figures cannot be printed"))?;
    }
    engine.pool().close().await;
    Ok(())
}

/// Opens the database, creates what is not there yet, and starts the engine on it.
async fn start(db: &Path) -> Result<Engine<Sqlite>, Box<dyn Error>> {
    let options = SqliteConnectOptions::new().filename(db).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS payment (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL) STRICT")
        .execute(&pool)
        .await?;
    idem_runtime::migrate(&pool).await?;
    Ok(Engine::start(pool).await?)
}
