//! Webhooks from those who are not us: the providers' libraries, a provider in miniature, and a browser that looks on, each
//! in its own process. `tests/run` installs them.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use axum::Router;
use axum::routing::post_service;
use idem_runtime::{DatabaseQueue, Engine, Signature, WebhookRoute, http_route};
use serde_json::{Value, json};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::net::TcpListener;

use crate::payment_webhook::{SECRET, Server};

http_route! {
    /// Stores events.
    static STANDARD: WebhookRoute = WebhookRoute::new("tests.standard", "POST /webhook", "the clients").accept("35d");
}

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");

/// Not to be confused with a real one.
const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Where the libraries are installed, and none where they are to be done without.
fn installed() -> Option<PathBuf> {
    if idem_tests::without_server("webhooks") {
        return None;
    }
    Some(std::env::var("IDEM_TEST_WEBHOOKS").expect("IDEM_TEST_WEBHOOKS is not set: run `tests/run`").into())
}

fn python(home: &std::path::Path) -> Command {
    Command::new(home.join("venv/bin/python"))
}

/// The clients of both languages, before the address and the event.
fn clients(home: &std::path::Path) -> [Command; 2] {
    let (mut python, mut node) = (python(home), Command::new("node"));
    python.arg(format!("{CLIENTS}/webhook.py"));
    node.arg(format!("{CLIENTS}/webhook.mjs")).arg(home.join("node"));
    [python, node]
}

fn succeeded(run: &Output) -> &[u8] {
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    &run.stdout
}

/// The statuses of three deliveries, a forged one and an old one.
async fn statuses(mut client: Command, scheme: &str, to: SocketAddr, secret: &str, body: Value) -> Value {
    client.args([scheme, &format!("http://{to}/webhook"), secret, &body.to_string()]);
    let run = tokio::task::spawn_blocking(move || client.output().unwrap()).await.unwrap();
    serde_json::from_slice(succeeded(&run)).unwrap()
}

#[tokio::test]
async fn stripes_libraries_deliver_and_each_event_is_credited_once() {
    let Some(home) = installed() else { return };
    let program = crate::example::build("payment_webhook");
    for (mode, success) in [("request", 200), ("accept", 202)] {
        let server = Server::start(&program, &["--mode", mode]);
        for (language, client) in ["python", "node"].iter().zip(clients(&home)) {
            let object = json!({ "amount": 1_000, "metadata": { "account": language } });
            let event = json!({ "id": language, "type": "payment_intent.succeeded", "data": { "object": object } });
            let answers = statuses(client, "stripe", server.address, SECRET, event).await;
            assert_eq!(answers, json!([success, success, success, 401, 400]), "{language}");
        }
        let figures = server.until_events(2).await;
        assert_eq!(figures["cents_by_account"], json!({ "node": 1_000, "python": 1_000 }));
        assert_eq!(figures["deliveries"], 6);
    }
}

#[tokio::test]
async fn the_libraries_of_standard_webhooks_deliver_and_each_event_is_stored_once() {
    let Some(home) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(folder.path().join("inbox.db")).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    idem_runtime::migrate(&pool).await.unwrap();
    let engine = Engine::start(pool.clone()).await.unwrap();
    let signature = Signature::standard_webhooks(STANDARD_SECRET).unwrap();
    let receiver = STANDARD.accepting(&engine, signature, DatabaseQueue::new(&pool, "standard"));
    let app = Router::new().route("/webhook", post_service(receiver.service().unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async { axum::serve(listener, app).await });
    for client in clients(&home) {
        let answers = statuses(client, "standard", address, STANDARD_SECRET, json!({ "kind": "paid" })).await;
        assert_eq!(answers, json!([202, 202, 202, 401, 400]));
    }
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM idem_queue").fetch_one(&pool).await.unwrap();
    assert_eq!(stored, 2);
    serving.abort();
}

#[tokio::test]
async fn a_stripe_in_miniature_delivers_what_a_client_of_stripes_has_made() {
    let Some(home) = installed() else { return };
    let server = Server::start(&crate::example::build("payment_webhook"), &["--mode", "accept"]);
    let mut command = python(&home);
    command.arg(format!("{CLIENTS}/small_stripe.py")).arg(format!("http://{}/webhook", server.address)).arg(SECRET);
    let mut stripe = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(stripe.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "made");
    let figures = server.until_events(2).await;
    assert_eq!(figures["events_by_type"], json!({ "customer.created": 2 }));
    drop(stripe.stdin.take());
    assert!(stripe.wait().unwrap().success());
}

#[tokio::test]
async fn the_page_shows_balances_and_repeated_deliveries() {
    if idem_tests::without_server("chromium") {
        return;
    }
    let browser = std::env::var("IDEM_TEST_CHROMIUM").expect("IDEM_TEST_CHROMIUM is not set: run `tests/run`");
    let server = Server::start(&crate::example::build("payment_webhook"), &["--handler-delay", "800"]);
    // The event's identifier is the sender's: it must not become markup.
    let event = r#"{"id":"<b>e</b>","type":"payment_intent.succeeded","data":{"object":{"amount":1000,"metadata":{"account":"a&b"}}}}"#;
    assert_eq!(crate::payment_webhook::deliver(server.address, event).await, None);
    assert_eq!(crate::payment_webhook::deliver(server.address, event).await, Some(200));
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=3000", "--dump-dom", &format!("http://{}/", server.address)]);
    let run = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let page = String::from_utf8_lossy(succeeded(&run)).into_owned();
    for wanted in [
        "2 deliveries, 1 events applied: 1000 cents. Applied per delivery it would be 2000 cents.",
        "<tr><td>a&amp;b</td><td>1000</td></tr>",
        "<td>&lt;b&gt;e&lt;/b&gt;</td><td>payment_intent.succeeded</td><td>1000</td><td>1</td><td>the provider hung up</td>",
        r#"<tr class="again"><td>&lt;b&gt;e&lt;/b&gt;</td>"#,
    ] {
        assert!(page.contains(wanted), "{wanted} is not in {page}");
    }
}
