//! Clients on a bad line: some answers are lost, and nobody knows then whether the payment was made.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use axum::http::{Request, Response};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::send;

type Failed = Box<dyn Error + Send + Sync>;

const CLIENTS: u32 = 4;
const PAYMENTS: u32 = 10;

/// A client that gives up says so; the key lets it try again tomorrow.
const TRIES: u32 = 10;

/// What came of it, as a line of JSON.
pub(crate) async fn pay(to: SocketAddr) -> Result<Value, Failed> {
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(pay_as(client, to));
    }
    let (mut requests, mut replayed) = (0, 0);
    while let Some(client) = clients.join_next().await {
        let (sent, again) = client??;
        requests += sent;
        replayed += again;
    }
    let figures = Request::get("/payments").header(HOST, to.to_string()).body(Body::empty())?;
    let mut report: Value = serde_json::from_slice(send(to, figures).await?.body())?;
    report["requests"] = json!(requests);
    report["replayed"] = json!(replayed);
    Ok(report)
}

/// How many requests it took, and how many of the answers were an earlier one's.
async fn pay_as(client: u32, to: SocketAddr) -> Result<(u32, u32), Failed> {
    let (mut requests, mut replayed) = (0, 0);
    for number in 0..PAYMENTS {
        // Made once, before the first request: it belongs to the payment, not to the attempt. A real client keeps it where
        // a crash does not lose it.
        let key = format!("payment-{number}");
        // The line loses the first two answers of every second payment.
        let lost = if number.is_multiple_of(2) { 2 } else { 0 };
        let (sent, answer) = create(to, client, &key, lost).await?;
        requests += sent;
        replayed += u32::from(answer.headers().contains_key("idempotent-replayed"));
    }
    Ok((requests, replayed))
}

/// Sends the same request until there is an answer that says how it ended, and counts the requests.
async fn create(to: SocketAddr, client: u32, key: &str, lost: u32) -> Result<(u32, Response<Bytes>), Failed> {
    for sent in 1..=TRIES {
        match request(to, client, key).await {
            Ok(_) if sent <= lost => {}
            Ok(answer) if answer.status().is_success() => return Ok((sent, answer)),
            // Still in flight, or in trouble: it says when it is worth asking again.
            Ok(answer) if answer.status() == 409 || answer.status().is_server_error() => {
                tokio::time::sleep(pause(&answer)).await;
            }
            Ok(answer) => return Err(format!("{key} was refused: {}", answer.status()).into()),
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
    Err(format!("{key} has no answer after {TRIES} requests; nobody knows yet whether the payment was made").into())
}

fn pause(answer: &Response<Bytes>) -> Duration {
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

async fn request(to: SocketAddr, client: u32, key: &str) -> Result<Response<Bytes>, Failed> {
    let request = Request::post("/payments")
        .header(HOST, to.to_string())
        .header(AUTHORIZATION, format!("Bearer client-{client}"))
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", key);
    send(to, request.body(Body::from(r#"{"cents":1000}"#))?).await
}
