//! The example `payment_webhook` as its own process, killed and not, with a provider that is not patient. [B29]

#[path = "../../examples/http/client.rs"]
mod client;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

pub(crate) const SECRET: &str = "whsec_test_secret";

/// The server of one example, killed at the end.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it on a port of the system's choice, and waits until it listens.
    pub(crate) fn start(program: &PathBuf, options: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0"]).args(options).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let address = line.strip_prefix("listening on http://").map(str::to_owned);
            said.push(line);
            address
        });
        let address = address.unwrap_or_else(|| panic!("it does not listen: {said:?}"));
        // Read on, so that it never waits for its reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: address.parse().unwrap() }
    }

    /// As a power cut does.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).header("host", "localhost").body(Body::empty()).unwrap();
        serde_json::from_slice(&send(self.address, request).await.unwrap().1).unwrap()
    }

    /// Waits until the figures are these.
    pub(crate) async fn until_events(&self, events: usize) -> Value {
        let look = async {
            loop {
                let figures = self.get("/figures").await;
                if figures["events"] == json!(events) {
                    return figures;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), look).await.expect("the events are applied within a minute")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub(crate) async fn send(to: SocketAddr, request: Request<Body>) -> anyhow::Result<(u16, Vec<u8>)> {
    let answer = client::send(to, request).await.map_err(anyhow::Error::from_boxed)?;
    Ok((answer.status().as_u16(), answer.into_body().to_vec()))
}

/// HMAC-SHA256 in hexadecimal.
pub(crate) fn hmac(secret: &str, text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[allow(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
fn signed(body: &str) -> Request<Body> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let hex = hmac(SECRET, &format!("{now}.{body}"));
    with_header(format!("t={now},v1={hex}"), body)
}

fn with_header(signature: String, body: &str) -> Request<Body> {
    let request = Request::builder().method(Method::POST).uri("/webhook").header("host", "localhost");
    request.header("stripe-signature", signature).body(Body::from(body.to_owned())).unwrap()
}

fn payment(id: &str) -> String {
    let object = json!({ "amount": 1_000, "metadata": { "account": "a" } });
    json!({ "id": id, "type": "payment_intent.succeeded", "data": { "object": object } }).to_string()
}

/// An answer within this provider's patience; none when it has hung up.
pub(crate) async fn deliver(to: SocketAddr, body: &str) -> Option<u16> {
    let answered = tokio::time::timeout(Duration::from_millis(500), send(to, signed(body))).await;
    answered.ok()?.ok().map(|(status, _)| status)
}

/// Sends the event until the answer is a success, as a provider does.
async fn deliver_until_success(to: SocketAddr, body: &str) {
    let delivering = async { while deliver(to, body).await.is_none_or(|status| status >= 300) {} };
    tokio::time::timeout(Duration::from_secs(60), delivering).await.expect("a delivery succeeds within a minute");
}

/// The judge of the database of the example.
async fn number(db: &std::path::Path, sql: &'static str) -> i64 {
    let mut conn = SqliteConnectOptions::new().filename(db).connect().await.unwrap();
    sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap()
}

const CENTS: &str = "SELECT coalesce(sum(cents), 0) FROM account";

async fn the_deliveries_of_the_file_end_in_the_expected_figures(mode: &str) {
    const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data");
    let program = crate::example::build("payment_webhook");
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("credits.db");
    // The file was signed long ago.
    let options = ["--mode", mode, "--tolerance", "4000000000", "--db", db.to_str().unwrap()];
    let server = Server::start(&program, &options);
    let lines = std::fs::read_to_string(format!("{DATA}/stripe-deliveries.ndjson")).unwrap();
    let wanted = if mode == "accept" { 202 } else { 200 };
    for line in lines.lines() {
        let delivery: Value = serde_json::from_str(line).unwrap();
        let (header, body) = (&delivery["headers"]["Stripe-Signature"], delivery["body"].as_str().unwrap());
        let header = header.as_str().unwrap().to_owned();
        let forged = with_header(header.clone(), &body.replace("\"amount\"", " \"amount\""));
        if body.contains("\"amount\"") {
            assert_eq!(send(server.address, forged).await.unwrap().0, 401);
        }
        assert_eq!(send(server.address, with_header(header, body)).await.unwrap().0, wanted);
    }
    let expected = std::fs::read_to_string(format!("{DATA}/stripe-deliveries.expected.json")).unwrap();
    assert_eq!(server.until_events(140).await, serde_json::from_str::<Value>(&expected).unwrap());
    assert_eq!(number(&db, CENTS).await, 3_430_916);
}

#[tokio::test]
async fn the_deliveries_of_the_file_end_in_the_expected_figures_in_request_mode() {
    the_deliveries_of_the_file_end_in_the_expected_figures("request").await;
}

#[tokio::test]
async fn the_deliveries_of_the_file_end_in_the_expected_figures_in_accept_mode() {
    the_deliveries_of_the_file_end_in_the_expected_figures("accept").await;
}

/// Eight seconds and five, at a tenth.
#[tokio::test]
async fn a_handler_slower_than_the_provider_is_patient_credits_once_before_the_answer() {
    let program = crate::example::build("payment_webhook");
    let server = Server::start(&program, &["--handler-delay", "800"]);
    assert_eq!(deliver(server.address, &payment("e")).await, None, "the provider hangs up");
    assert_eq!(deliver(server.address, &payment("e")).await, Some(200), "it waits for the first");
    let figures = server.until_events(1).await;
    assert_eq!((&figures["cents_applied_once"], &figures["deliveries"]), (&json!(1_000), &json!(2)));
    let deliveries = server.get("/deliveries").await;
    assert_eq!((&deliveries[0]["answer"], &deliveries[1]["answer"]), (&Value::Null, &json!(200)));
}

#[tokio::test]
async fn a_handler_slower_than_the_provider_is_patient_credits_once_after_the_answer() {
    let program = crate::example::build("payment_webhook");
    let server = Server::start(&program, &["--handler-delay", "800", "--mode", "accept"]);
    for _ in 0..3 {
        assert_eq!(deliver(server.address, &payment("e")).await, Some(202));
    }
    let figures = server.until_events(1).await;
    assert_eq!(
        (&figures["cents_applied_once"], &figures["cents_if_applied_per_delivery"]),
        (&json!(1_000), &json!(3_000))
    );
}

/// Killed while the handler works, in front of its commit and behind it; the provider knows only its answers.
async fn killed_while_the_handler_works_one_credit_remains(mode: &str) {
    let program = crate::example::build("payment_webhook");
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("credits.db");
    let options = ["--handler-delay", "300", "--mode", mode, "--db", db.to_str().unwrap()];
    let mut server = Server::start(&program, &options);
    for number in 0..6 {
        let (body, address) = (payment(&format!("e{number}")), server.address);
        let delivering = tokio::spawn(async move { deliver(address, &body).await });
        // Into the handler, and past it: 50 to 550 ms after the request.
        tokio::time::sleep(Duration::from_millis(50 + 100 * number)).await;
        server.kill();
        let answered = delivering.await.unwrap();
        server = Server::start(&program, &options);
        if answered.is_none_or(|status| status >= 300) {
            deliver_until_success(server.address, &payment(&format!("e{number}"))).await;
        }
    }
    assert_eq!(server.until_events(6).await["cents_applied_once"], json!(6_000));
    // And once more each, after everything.
    for number in 0..6 {
        deliver_until_success(server.address, &payment(&format!("e{number}"))).await;
    }
    server.kill();
    assert_eq!(number(&db, CENTS).await, 6_000);
    assert_eq!(number(&db, "SELECT count(*) FROM idem_key").await, 6);
}

#[tokio::test]
async fn killed_while_the_handler_works_one_credit_remains_in_request_mode() {
    killed_while_the_handler_works_one_credit_remains("request").await;
}

#[tokio::test]
async fn killed_while_the_handler_works_one_credit_remains_in_accept_mode() {
    killed_while_the_handler_works_one_credit_remains("accept").await;
}
