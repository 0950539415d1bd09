//! A provider in miniature: it signs, gives up after five seconds, and sends again until it is answered with a success.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::Request;
use axum::http::header::HOST;
use hmac::{Hmac, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::client::send;

/// How long it waits for an answer; some providers wait for less.
const PATIENCE: Duration = Duration::from_secs(5);

/// Real providers wait for minutes, then hours.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn pay(to: SocketAddr, secret: String) {
    for number in 1..=3 {
        let event = json!({
            "id": format!("evt_demo_{number}"),
            "type": "payment_intent.succeeded",
            "data": { "object": { "amount": 1000 * number, "metadata": { "account": "demo" } } },
        });
        deliver(to, &secret, number, &event.to_string()).await;
    }
    eprintln!("the provider has no more to send; the page shows what came of it, Ctrl-C ends");
}

async fn deliver(to: SocketAddr, secret: &str, number: i32, body: &str) {
    for attempt in 1.. {
        let answered = tokio::time::timeout(PATIENCE, send(to, signed(to, secret, body))).await;
        let ended = match answered {
            Ok(Ok(response)) if response.status().is_success() => {
                eprintln!("payment {number}, delivery {attempt}: answered {}", response.status());
                return;
            }
            Ok(Ok(response)) => format!("answered {}", response.status()),
            Ok(Err(error)) => format!("failed: {error}"),
            Err(_) => format!("no answer within {} s, the provider hangs up", PATIENCE.as_secs()),
        };
        eprintln!("payment {number}, delivery {attempt}: {ended}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Signed anew for each delivery, as Stripe does.
#[allow(clippy::disallowed_methods, reason = "the provider has a clock of its own")]
fn signed(to: SocketAddr, secret: &str, body: &str) -> Request<Body> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut request = Request::new(Body::from(body.to_owned()));
    // An HMAC takes a key of any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        mac.update(format!("{now}.{body}").as_bytes());
        let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        if let Ok(signature) = format!("t={now},v1={hex}").parse() {
            request.headers_mut().insert("stripe-signature", signature);
        }
    }
    *request.method_mut() = axum::http::Method::POST;
    *request.uri_mut() = axum::http::Uri::from_static("/webhook");
    if let Ok(host) = to.to_string().parse() {
        request.headers_mut().insert(HOST, host);
    }
    request
}
