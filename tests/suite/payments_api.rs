//! The example `payments_api` as its own process, under load, and killed under load. [B29]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::payment_webhook::{Server, send};

fn create(key: &str) -> Request<Body> {
    Request::post("/payments")
        .header("host", "localhost")
        .header("authorization", "Bearer somebody")
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Body::from(r#"{"cents":1000}"#))
        .unwrap()
}

/// 200 clients with 20 keys, each of which sends the key that is its own twice.
#[tokio::test]
async fn many_clients_with_few_keys_make_one_payment_for_each_key() {
    let server = Server::start(&crate::example::build("payments_api"), &[]);
    let address = server.address;
    let mut clients = JoinSet::new();
    for client in 0..200 {
        clients.spawn(async move {
            let key = format!("key-{}", client % 20);
            let mut answers = Vec::new();
            for _ in 0..2 {
                answers.push(send(address, create(&key)).await.unwrap());
            }
            (client % 20, answers)
        });
    }
    let mut first: [Option<Vec<u8>>; 20] = Default::default();
    while let Some(client) = clients.join_next().await {
        let (key, answers) = client.unwrap();
        for (status, body) in answers {
            assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
            assert_eq!(&body, first[key].get_or_insert_with(|| body.clone()), "all get the answer of the first");
        }
    }
    assert_eq!(server.get("/payments").await, json!({ "payments": 20, "cents": 20_000 }));
}

/// 50 times, at a moment that nobody has chosen, while twelve clients create payments and send each until it is answered.
#[tokio::test]
async fn killed_fifty_times_under_load_there_is_one_payment_for_each_key() {
    const KILLS: u64 = 50;
    let program = crate::example::build("payments_api");
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("payments.db");
    let options = ["--db", db.to_str().unwrap()];
    let server = Server::start(&program, &options);
    let (moved, address) = watch::channel(server.address);
    let (enough, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(Semaphore::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..12 {
        let (enough, answered, address) = (Arc::clone(&enough), Arc::clone(&answered), address.clone());
        clients.spawn(async move {
            let mut created = 0_i64;
            while !enough.load(Ordering::SeqCst) {
                until_answered(&address, &Uuid::new_v4().to_string()).await;
                created += 1;
                answered.add_permits(1);
            }
            created
        });
    }
    let mut server = server;
    for kill in 0..KILLS {
        let some = tokio::time::timeout(Duration::from_secs(60), answered.acquire_many(3)).await;
        some.expect("clients are answered within a minute").unwrap().forget();
        // Somewhere in the next request, a different place each time.
        tokio::time::sleep(Duration::from_micros(kill * 1_377 % 20_000)).await;
        server.kill();
        server = Server::start(&program, &options);
        moved.send(server.address).unwrap();
    }
    enough.store(true, Ordering::SeqCst);
    let mut keys = 0;
    while let Some(created) = clients.join_next().await {
        keys += created.unwrap();
    }
    assert!(keys >= 150, "there was a load: {keys}");
    let figures: Value = server.get("/payments").await;
    assert_eq!(figures, json!({ "payments": keys, "cents": keys * 1_000 }));
}

/// Sends the request until somebody answers it with its payment, wherever the server is by now.
async fn until_answered(address: &watch::Receiver<SocketAddr>, key: &str) {
    loop {
        let to = *address.borrow();
        let answer = tokio::time::timeout(Duration::from_secs(5), send(to, create(key))).await;
        match answer {
            Ok(Ok((201, _))) => return,
            // Contention, which says that it comes again, or a server that is away: a client's pause.
            Ok(Ok((409 | 503, _))) | Ok(Err(_)) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Ok(Ok((status, body))) => panic!("{status}: {}", String::from_utf8_lossy(&body)),
        }
    }
}
