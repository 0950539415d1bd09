//! The `Idempotency-Key` layer: key, effect and response commit together, and every answer that it can give.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::BodyExt;
use idem_runtime::{KeyedLayer, KeyedRoute, KeyedTx, Purger, http_route};
use idem_tests::{Db, TestStore};
use tokio::sync::Semaphore;
use tower::ServiceExt;

http_route! {
    /// Does what its body says.
    static ACT: KeyedRoute = KeyedRoute::new("act", "POST,PATCH /act").retention("24h").scope("account");

    /// The same, and waits for the other.
    static WAIT: KeyedRoute =
        KeyedRoute::new("act.wait", "POST /act").retention("1h").wait_in_flight(Duration::from_secs(20));

    /// The same, with or without a key.
    static MAY: KeyedRoute = KeyedRoute::new("act.may", "POST /act").retention("1h").optional();
}

/// What the handlers meet.
struct Gate {
    entered: Semaphore,
    open: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { entered: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

/// Writes the effect `e`, and does what the body says.
async fn act<S: TestStore>(gate: Arc<Gate>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    if body == "untaken" {
        return "done".into_response();
    }
    let mut tx = match KeyedTx::<S>::from_request_parts(&mut parts, &()).await {
        Ok(tx) => tx,
        Err(rejection) => return rejection.into_response(),
    };
    S::run(&mut tx, "INSERT INTO effect (note) VALUES ('e')").await.unwrap();
    match body.as_str() {
        "500" => (StatusCode::INTERNAL_SERVER_ERROR, "sorry").into_response(),
        "409" => StatusCode::CONFLICT.into_response(),
        "429" => StatusCode::TOO_MANY_REQUESTS.into_response(),
        "422" => (StatusCode::UNPROCESSABLE_ENTITY, "no such account").into_response(),
        "panic" => panic!("as told"),
        "twice" => match KeyedTx::<S>::from_request_parts(&mut parts, &()).await {
            Ok(_) => StatusCode::OK.into_response(),
            Err(rejection) => rejection.into_response(),
        },
        "stream" => {
            let parts = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"part"))]);
            Body::from_stream(parts).into_response()
        }
        "big" => vec![b'x'; 2 << 20].into_response(),
        "keep" => {
            tokio::spawn(async move {
                gate.open.acquire().await.unwrap().forget();
                drop(tx);
            });
            "kept".into_response()
        }
        "commit" => {
            S::run(&mut tx, "COMMIT").await.unwrap();
            "committed".into_response()
        }
        "wait" => {
            gate.entered.add_permits(1);
            gate.open.acquire().await.unwrap().forget();
            "waited".into_response()
        }
        _ => (StatusCode::CREATED, [("location", "/act/1"), ("x-other", "1")], "done").into_response(),
    }
}

fn app<S: TestStore>(layer: KeyedLayer<S>, gate: &Arc<Gate>) -> Router {
    let gate = Arc::clone(gate);
    let handler = move |request: Request<Body>| act::<S>(Arc::clone(&gate), request);
    Router::new().route("/act", post(handler.clone()).patch(handler.clone()).put(handler).layer(layer))
}

async fn layered<S: TestStore>(db: &Db<S>, route: &'static KeyedRoute) -> KeyedLayer<S> {
    let engine = db.engine(4).await;
    let caller = |parts: &axum::http::request::Parts| Some(parts.headers.get("caller")?.to_str().ok()?.to_owned());
    route.layer(&engine, caller).unwrap()
}

fn request(key: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post("/act").header("caller", "c1").header("idempotency-key", key).body(body.into()).unwrap()
}

struct Answer {
    status: u16,
    body: String,
    response: axum::http::response::Parts,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.response.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The code of a problem.
    fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.body);
        let problem: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        problem["code"].as_str().unwrap().to_owned()
    }
}

async fn ask(app: &Router, request: Request<Body>) -> Answer {
    let (response, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Answer { status: response.status.as_u16(), body, response }
}

pub(super) async fn a_retry_gets_the_response_of_the_first<S: TestStore>(db: Arc<Db<S>>) {
    let app = app(layered(&db, &ACT).await, &Arc::default());
    let first = ask(&app, request("k1", "credit")).await;
    assert_eq!((first.status, first.body.as_str(), first.header("x-other")), (201, "done", Some("1")));
    assert_eq!(first.header("idempotent-replayed"), None);
    let retry = ask(&app, request("\"k1\"", "credit")).await;
    assert_eq!((retry.status, retry.body.as_str()), (201, "done"));
    assert_eq!((retry.header("location"), retry.header("x-other")), (Some("/act/1"), None));
    assert_eq!(retry.header("idempotent-replayed"), Some("true"));
    assert!(retry.header("idempotency-key-expires").is_some() && first.header("idempotency-key-expires").is_some());
    assert_eq!((db.effects("e").await, db.keys().await), (1, 1));

    // A refusal of the handler's is final too.
    assert_eq!(ask(&app, request("k2", "422")).await.body, "no such account");
    let refused = ask(&app, request("k2", "422")).await;
    assert_eq!((refused.status, refused.header("idempotent-replayed")), (422, Some("true")));
}

pub(super) async fn another_request_under_a_key_is_refused<S: TestStore>(db: Arc<Db<S>>) {
    let app = app(layered(&db, &ACT).await, &Arc::default());
    ask(&app, request("k", "credit")).await;
    let patch = Request::patch("/act").header("caller", "c1").header("idempotency-key", "k");
    let query = Request::post("/act?a=1").header("caller", "c1").header("idempotency-key", "k");
    for other in [request("k", "other"), patch.body("credit".into()).unwrap(), query.body("credit".into()).unwrap()] {
        let answer = ask(&app, other).await;
        assert_eq!((answer.status, answer.code().as_str()), (422, "idempotency_key_reused"));
    }
    let other = Request::post("/act").header("caller", "c2").header("idempotency-key", "k");
    assert_eq!(ask(&app, other.body("other".into()).unwrap()).await.status, 201, "another caller's key is another");
    assert_eq!((db.effects("e").await, db.keys().await), (2, 2));
}

pub(super) async fn what_may_end_better_stores_nothing<S: TestStore>(db: Arc<Db<S>>) {
    let app = app(layered(&db, &ACT).await, &Arc::default());
    let table = [
        ("500", 500, None),
        ("409", 409, None),
        ("429", 429, None),
        ("panic", 500, Some("failed")),
        ("untaken", 500, Some("transaction_unused")),
        ("twice", 500, Some("failed")),
        ("stream", 500, Some("response_unstorable")),
        ("big", 500, Some("response_unstorable")),
    ];
    for (body, status, code) in table {
        for _ in 0..2 {
            let answer = ask(&app, request("k", body)).await;
            assert_eq!(answer.status, status, "{body}");
            assert_eq!(answer.header("idempotent-replayed"), None);
            if let Some(code) = code {
                assert_eq!(answer.code(), code, "{body}");
            }
        }
        assert_eq!((db.effects("e").await, db.keys().await), (0, 0), "{body}");
    }
    assert_eq!(ask(&app, request("k", "credit")).await.status, 201, "the key is as good as new");
}

pub(super) async fn a_request_without_what_is_needed_is_told_so<S: TestStore>(db: Arc<Db<S>>) {
    let layer = layered(&db, &ACT).await.body_limit(100).body_timeout(Duration::from_millis(50));
    let app = app(layer, &Arc::default());
    let keyed = |key: &[u8]| Request::post("/act").header("caller", "c1").header("idempotency-key", key);
    let cut = futures_util::stream::iter([Ok(Bytes::from_static(b"cre")), Err(std::io::Error::other("cut"))]);
    let slow = futures_util::stream::pending::<Result<Bytes, Infallible>>();
    let table = [
        (Request::post("/act").header("caller", "c1"), Body::empty(), 400, "idempotency_key_missing"),
        (keyed(b"\"open"), Body::empty(), 400, "idempotency_key_malformed"),
        (keyed(b"\xc3\xa4"), Body::empty(), 400, "idempotency_key_malformed"),
        (keyed(&[b'k'; 10_000]), Body::empty(), 400, "idempotency_key_malformed"),
        (keyed(b"k").header("idempotency-key", "k"), Body::empty(), 400, "idempotency_key_malformed"),
        (Request::post("/act").header("idempotency-key", "k"), Body::empty(), 401, "caller_unknown"),
        (keyed(b"k"), Body::from(vec![b'x'; 101]), 413, "body_too_large"),
        (keyed(b"k"), Body::from_stream(cut), 400, "body_incomplete"),
        (keyed(b"k"), Body::from_stream(slow), 408, "body_slow"),
    ];
    for (request, body, status, code) in table {
        let answer = ask(&app, request.body(body).unwrap()).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
    }
    assert_eq!((db.effects("e").await, db.keys().await), (0, 0));
    // Not among the route's methods, so that nobody opened a transaction for it.
    let put = Request::put("/act").header("caller", "c1").header("idempotency-key", "k");
    assert_eq!(ask(&app, put.body("credit".into()).unwrap()).await.code(), "failed");
    assert_eq!(db.effects("e").await, 0);
}

pub(super) async fn a_key_in_flight_is_rejected_at_once_or_waits<S: TestStore>(db: Arc<Db<S>>) {
    let gate = Arc::new(Gate::default());
    let app_reject = app(layered(&db, &ACT).await, &gate);
    let first = tokio::spawn({
        let app = app_reject.clone();
        async move { ask(&app, request("k", "wait")).await.status }
    });
    gate.entered.acquire().await.unwrap().forget();
    let second = ask(&app_reject, request("k", "wait")).await;
    assert_eq!(
        (second.status, second.code().as_str(), second.header("retry-after")),
        (409, "request_in_flight", Some("1"))
    );
    gate.open.add_permits(1);
    assert_eq!(first.await.unwrap(), 200);
    assert_eq!(ask(&app_reject, request("k", "wait")).await.header("idempotent-replayed"), Some("true"));

    let app_wait = app(layered(&db, &WAIT).await, &gate);
    let all: Vec<_> = (0..8)
        .map(|_| {
            let app = app_wait.clone();
            tokio::spawn(async move { ask(&app, request("k", "wait")).await })
        })
        .collect();
    gate.entered.acquire().await.unwrap().forget();
    gate.open.add_permits(1);
    let mut replayed = 0;
    for answer in all {
        let answer = answer.await.unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "waited"));
        replayed += usize::from(answer.header("idempotent-replayed").is_some());
    }
    assert_eq!((replayed, db.effects("e").await), (7, 2));
}

pub(super) async fn a_key_in_flight_in_another_process_is_found_by_the_database<S: TestStore>(db: Arc<Db<S>>) {
    let gate = Arc::new(Gate::default());
    // Two layers know nothing of each other, like two processes.
    let here = app(layered(&db, &ACT).await, &gate);
    let engine = db.engine_with(2, |builder| builder.claim_wait(Duration::from_millis(50))).await;
    let there = app(ACT.layer(&engine, |_| Some("c1".into())).unwrap(), &gate);
    let first = tokio::spawn(async move { ask(&here, request("k", "wait")).await.status });
    gate.entered.acquire().await.unwrap().forget();
    let second = ask(&there, request("k", "wait")).await;
    assert!(matches!((second.status, second.code().as_str()), (409, "request_in_flight") | (503, "unavailable")));
    assert_eq!(second.header("retry-after"), Some("1"));
    gate.open.add_permits(1);
    assert_eq!(first.await.unwrap(), 200);
    assert_eq!(ask(&there, request("k", "wait")).await.header("idempotent-replayed"), Some("true"));
    assert_eq!((db.effects("e").await, db.keys().await), (1, 1));
}

pub(super) async fn a_client_that_hangs_up_leaves_nothing_and_its_retry_is_answered<S: TestStore>(db: Arc<Db<S>>) {
    let gate = Arc::new(Gate::default());
    let app = app(layered(&db, &ACT).await, &gate);
    for _ in 0..5 {
        let cut = tokio::spawn({
            let app = app.clone();
            async move { ask(&app, request("k", "wait")).await.status }
        });
        gate.entered.acquire().await.unwrap().forget();
        cut.abort();
        assert!(cut.await.unwrap_err().is_cancelled());
        assert_eq!(db.effects("e").await, 0);
    }
    gate.open.add_permits(1);
    assert_eq!(ask(&app, request("k", "wait")).await.status, 200);
    assert_eq!((db.effects("e").await, db.keys().await), (1, 1));
}

pub(super) async fn a_transaction_that_is_kept_or_committed_by_hand_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    let gate = Arc::new(Gate::default());
    let engine = db.engine_with(4, |builder| builder.claim_wait(Duration::from_millis(100))).await;
    let app = app(ACT.layer(&engine, |_| Some("c1".into())).unwrap(), &gate);
    assert_eq!(ask(&app, request("k", "keep")).await.code(), "failed");
    gate.open.add_permits(1);
    assert_eq!(ask(&app, request("k2", "credit")).await.status, 201, "the connections are clean");
    assert_eq!((db.effects("e").await, db.keys().await), (1, 1));

    assert_eq!(ask(&app, request("k3", "commit")).await.code(), "failed");
    for key in ["k4", "k5", "k6", "k7"] {
        assert_eq!(ask(&app, request(key, "credit")).await.status, 201, "the connections are clean");
    }
}

pub(super) async fn without_a_key_an_optional_route_runs_each_time<S: TestStore>(db: Arc<Db<S>>) {
    let app = app(layered(&db, &MAY).await, &Arc::default());
    let bare = |body: &'static str| Request::post("/act").header("caller", "c1").body(body.into()).unwrap();
    assert_eq!(ask(&app, bare("credit")).await.status, 201);
    let again = ask(&app, bare("credit")).await;
    assert_eq!((again.status, again.header("idempotency-key-expires")), (201, None));
    assert_eq!((db.effects("e").await, db.keys().await), (2, 0));
    assert_eq!(ask(&app, bare("500")).await.status, 500);
    assert_eq!(ask(&app, bare("stream")).await.body, "part", "nothing is stored, so it need not be whole");
    assert_eq!(db.effects("e").await, 3);
    ask(&app, request("k", "credit")).await;
    assert!(ask(&app, request("k", "credit")).await.header("idempotent-replayed").is_some());
}

pub(super) async fn a_routes_keys_are_purged_and_an_undeclared_route_is_refused<S: TestStore>(db: Arc<Db<S>>) {
    static UNDECLARED: KeyedRoute = KeyedRoute::new("nobody", "POST /nobody").retention("1h");
    let engine = db.engine(2).await;
    let refused = UNDECLARED.layer(&engine, |_| None).unwrap_err().to_string();
    assert!(refused.contains("`nobody`") && refused.contains("http_route!"), "{refused}");

    let app = app(layered(&db, &ACT).await, &Arc::default());
    ask(&app, request("k", "credit")).await;
    let old = if S::NAME == "SQLite" { "0" } else { "'2020-01-01'" };
    db.run(&format!("UPDATE idem_key SET claimed_at = {old}")).await;
    assert_eq!(Purger::new(&engine).pass().await.unwrap().purged(), 1);
    assert_eq!(ask(&app, request("k", "credit")).await.header("idempotent-replayed"), None);
    assert_eq!(db.effects("e").await, 2);
}
