//! Clients on a bad line: half of the answers are lost, and nobody knows then whether the payment was made.

use std::error::Error;
use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Request, Response};
use serde_json::{Value, json};

use crate::client::send;

type Failed = Box<dyn Error + Send + Sync>;

const CLIENTS: usize = 4;
const PAYMENTS: usize = 10;

/// What came of it, as a line of JSON.
pub(crate) async fn pay(to: SocketAddr) -> Result<Value, Failed> {
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(async move {
            let (mut requests, mut replayed) = (0, 0);
            for number in 0..PAYMENTS {
                let (sent, was_replayed) = create(to, client, number).await?;
                requests += sent;
                replayed += u32::from(was_replayed);
            }
            Ok::<_, Failed>((requests, replayed))
        });
    }
    let (mut requests, mut replayed) = (0, 0);
    while let Some(client) = clients.join_next().await {
        let (sent, again) = client??;
        requests += sent;
        replayed += again;
    }
    let figures = Request::get("/payments").header(HOST, "localhost").body(Body::empty())?;
    let mut report: Value = serde_json::from_slice(send(to, figures).await?.body())?;
    report["requests"] = json!(requests);
    report["replayed"] = json!(replayed);
    Ok(report)
}

/// Sends the payment until there is an answer. The key is made once, before the first request: it belongs to the payment,
/// and a real client keeps it where a crash does not lose it.
async fn create(to: SocketAddr, client: usize, number: usize) -> Result<(u32, bool), Failed> {
    let key = format!("payment-{number}");
    for sent in 1.. {
        let answer = request(to, client, &key).await?;
        // The first answers of every second payment are lost on the way back.
        if number.is_multiple_of(2) && sent < 3 {
            continue;
        }
        if answer.status().is_success() {
            return Ok((sent, answer.headers().contains_key("idempotent-replayed")));
        }
        if answer.status().is_client_error() && answer.status() != 409 {
            return Err(format!("{key} was refused: {}", answer.status()).into());
        }
    }
    unreachable!("it returns when there is an answer")
}

async fn request(to: SocketAddr, client: usize, key: &str) -> Result<Response<Bytes>, Failed> {
    let request = Request::post("/payments")
        .header(HOST, "localhost")
        .header(AUTHORIZATION, format!("Bearer client-{client}"))
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", key);
    send(to, request.body(Body::from(r#"{"cents":1000}"#))?).await
}
