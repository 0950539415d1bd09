//! Webhooks: whose they are, what becomes of their events, and every answer that a sender can get.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::request::Builder;
use axum::routing::post_service;
use futures_util::stream::{iter, pending};
use hmac::{Hmac, Mac};
use http_body_util::BodyExt;
use idem_runtime::{
    Consumer, DatabaseQueue, Engine, Error, ErrorKind, Incoming, Purger, Route, Signature, WebhookReceiver,
    WebhookRoute, http_route,
};
use idem_tests::{Consumes, Db, Gate, Wire};
use sha2::Sha256;
use tower::ServiceExt;

http_route! {
    /// Stores events.
    static DOOR: WebhookRoute = WebhookRoute::new("tests.door", "POST /webhook", "the tests").accept("35d");

    /// The same, for a sender whose bodies do not change.
    static STRICT: WebhookRoute =
        WebhookRoute::new("tests.door.strict", "POST /webhook", "the tests").accept("1h").fingerprint();
}

/// A store with routes that name its handlers.
pub(super) trait Webhooks: Consumes {
    const ONE: &'static WebhookRoute;
    const TWO: &'static WebhookRoute;
    const TELL: &'static WebhookRoute;
}

macro_rules! webhooks {
    ($module:ident, $store:ty) => {
        mod $module {
            use idem_runtime::{WebhookRoute, http_route};
            use idem_tests::Consumes;

            const ROUTE: WebhookRoute = WebhookRoute::new("tests.webhook", "POST /webhook", "the tests");

            type Apply = <$store as Consumes>::Apply;
            type Second = <$store as Consumes>::Second;

            http_route! {
                static ONE: WebhookRoute = ROUTE.runs::<$store, Apply>();
                static TWO: WebhookRoute = ROUTE.runs::<$store, Apply>().runs::<$store, Second>();
                static TELL: WebhookRoute = ROUTE.runs::<$store, <$store as Consumes>::Tell>();
            }

            impl super::Webhooks for $store {
                const ONE: &'static WebhookRoute = &ONE;
                const TWO: &'static WebhookRoute = &TWO;
                const TELL: &'static WebhookRoute = &TELL;
            }
        }
    };
}

webhooks!(sqlite, sqlx::Sqlite);
#[cfg(feature = "databases")]
webhooks!(postgres, sqlx::Postgres);
#[cfg(feature = "databases")]
webhooks!(mysql, sqlx::MySql);

const SECRET: &str = "whsec_test_secret";

fn signature() -> Signature {
    Signature::stripe(SECRET).unwrap()
}

fn apply<S: Webhooks>(gate: &Arc<Gate>) -> Route<S, S::Apply> {
    Route::with_state(Arc::clone(gate))
}

/// A receiver of one handler.
fn receiver<S: Webhooks>(engine: &Engine<S>, gate: &Arc<Gate>) -> WebhookReceiver<S> {
    S::ONE.applying(engine, signature()).route(apply(gate))
}

fn app<S: Webhooks>(receiver: WebhookReceiver<S>) -> Router {
    Router::new().route("/webhook", post_service(receiver.service().unwrap()))
}

#[allow(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A request with Stripe's header over this body, signed at this time.
fn signed_at(time: &str, body: &[u8]) -> Builder {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Request::post("/webhook").header("stripe-signature", format!("t={time},v1={hex}"))
}

fn signed(body: impl Into<Vec<u8>>) -> Request<Body> {
    let body = body.into();
    signed_at(&now().to_string(), &body).body(body.into()).unwrap()
}

fn event(wire: &Wire) -> Request<Body> {
    signed(wire.message().body)
}

struct Answer {
    status: u16,
    /// The code of a problem; empty for an empty body.
    code: String,
    comes_again: bool,
}

async fn ask(app: &Router, request: Request<Body>) -> Answer {
    let (response, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = if body.is_empty() { "".into() } else { serde_json::from_slice(&body).unwrap() };
    let code = problem.get("code").and_then(|code| code.as_str()).unwrap_or_default().to_owned();
    Answer { status: response.status.as_u16(), code, comes_again: response.headers.contains_key("retry-after") }
}

async fn answer(app: &Router, request: Request<Body>) -> (u16, String) {
    let answer = ask(app, request).await;
    (answer.status, answer.code)
}

pub(super) async fn an_event_is_applied_once_and_each_delivery_gets_the_same_answer<S: Webhooks>(db: Arc<Db<S>>) {
    let (engine, gate) = (db.engine(4).await, Arc::default());
    let app = app(receiver(&engine, &gate));
    for _ in 0..3 {
        assert_eq!(answer(&app, event(&Wire::new("e"))).await, (200, String::new()));
    }
    // [B53] Dedup is no ordering: another event is another one, whenever it was sent.
    let older = br#"{  "fails" : 0, "id":"old" }"#;
    let request = signed_at(&(now() - 200).to_string(), older).body(Body::from(older.as_slice())).unwrap();
    assert_eq!(answer(&app, request).await, (200, String::new()), "spaces and an unusual order are the sender's right");
    assert_eq!((db.effects("e").await, db.effects("old").await, db.keys().await), (1, 1, 2));
}

pub(super) async fn what_is_not_the_senders_is_refused_before_anything_is_stored<S: Webhooks>(db: Arc<Db<S>>) {
    let (engine, gate) = (db.engine(2).await, Arc::default());
    let app = app(receiver(&engine, &gate));
    let body = Wire::new("e").message().body;
    let with = |time: &str| signed_at(time, &body).body(Body::from(body.clone())).unwrap();
    let header = |value: &str| Request::post("/webhook").header("stripe-signature", value);
    let ten = (0..10)
        .fold(signed_at(&now().to_string(), &body), |request, _| request.header("stripe-signature", "t=1,v1=ab"));
    let changed = signed_at(&now().to_string(), &body).body(Body::from(br#"{"id":"f","fails":0}"#.as_slice())).unwrap();
    let bare = |request: Builder| request.body(Body::from(body.clone())).unwrap();
    let table = [
        (bare(Request::post("/webhook")), 400, "signature_unreadable"),
        (bare(ten), 400, "signature_unreadable"),
        (bare(header("")), 400, "signature_unreadable"),
        (bare(header("t=now,v1=00")), 400, "signature_unreadable"),
        (bare(header(&format!("t={},v1=zz", now()))), 401, "signature_mismatch"),
        (changed, 401, "signature_mismatch"),
        (with(&(now() - 301).to_string()), 400, "signature_stale"),
        (with("253402300800"), 400, "signature_stale"),
        (with("-1"), 400, "signature_unreadable"),
        (with("99999999999999999999999999"), 400, "signature_stale"),
    ];
    for (index, (request, status, code)) in table.into_iter().enumerate() {
        assert_eq!(answer(&app, request).await, (status, code.to_owned()), "row {index}");
    }
    assert_eq!((db.effects("e").await, db.keys().await, gate.runs("e")), (0, 0, 0));
}

pub(super) async fn a_body_that_is_no_event_is_refused<S: Webhooks>(db: Arc<Db<S>>) {
    let (engine, gate) = (db.engine(2).await, Arc::default());
    let app = app(receiver(&engine, &gate).body_timeout(Duration::from_millis(50)));
    let streamed = |body| Request::post("/webhook").body(body).unwrap();
    let cut = iter([Ok(Bytes::from_static(b"{\"i")), Err(std::io::Error::other("cut"))]);
    let table = [
        (signed(*b"\xff\xfe{"), 400, "event_malformed"),
        (signed(""), 400, "event_malformed"),
        (signed("[]"), 400, "event_malformed"),
        (signed(r#"{"id": ""}"#), 422, "event_without_key"),
        (streamed(Body::from(vec![b'x'; 50 << 20])), 413, "body_too_large"),
        (streamed(Body::from_stream(cut)), 400, "body_incomplete"),
        (streamed(Body::from_stream(pending::<Result<Bytes, Infallible>>())), 408, "body_slow"),
    ];
    for (index, (request, status, code)) in table.into_iter().enumerate() {
        let answered = ask(&app, request).await;
        assert_eq!(
            (answered.status, answered.code.as_str(), answered.comes_again),
            (status, code, false),
            "row {index}"
        );
    }
    assert_eq!(db.keys().await, 0);
    let get = Request::get("/webhook").body(Body::empty()).unwrap();
    assert_eq!(ask(&app, get).await.status, 405);
}

/// [B50]
pub(super) async fn what_fails_is_no_success_and_succeeds_when_it_is_sent_again<S: Webhooks>(db: Arc<Db<S>>) {
    let gate: Arc<Gate> = Arc::default();
    let engine = db.engine_with(4, |builder| builder.claim_wait(Duration::from_millis(50))).await;
    let app = app(receiver(&engine, &gate));
    assert_eq!(answer(&app, event(&Wire::failing("e", 1))).await, (500, "failed".to_owned()));
    assert_eq!((db.effects("e").await, db.keys().await), (0, 0));
    assert_eq!(ask(&app, event(&Wire::failing("e", 1))).await.status, 200);

    // Another delivery of the event is still at work: neither a success nor lost.
    let first = tokio::spawn({
        let app = app.clone();
        async move { ask(&app, event(&Wire::waiting("w"))).await.status }
    });
    gate.reached.acquire().await.unwrap().forget();
    let second = ask(&app, event(&Wire::waiting("w"))).await;
    assert_eq!((second.status, second.code.as_str(), second.comes_again), (503, "unavailable", true));
    gate.open.add_permits(1);
    assert_eq!(first.await.unwrap(), 200);
    assert_eq!(ask(&app, event(&Wire::waiting("w"))).await.status, 200);

    // A database that is in trouble.
    db.run("ALTER TABLE effect RENAME TO away").await;
    assert_eq!(ask(&app, event(&Wire::new("t"))).await.status, 500);
    db.run("ALTER TABLE away RENAME TO effect").await;
    engine.pool().close().await;
    let answered = ask(&app, event(&Wire::new("t"))).await;
    assert_eq!((answered.status, answered.code.as_str(), answered.comes_again), (503, "unavailable", true));
    assert_eq!((db.effects("t").await, db.effects("w").await, db.keys().await), (0, 1, 2));
}

pub(super) async fn a_sender_that_hangs_up_finds_a_duplicate<S: Webhooks>(db: Arc<Db<S>>) {
    let (engine, gate) = (db.engine(4).await, Arc::new(Gate::default()));
    let app = app(receiver(&engine, &gate));
    let impatient = tokio::spawn({
        let app = app.clone();
        async move { ask(&app, event(&Wire::waiting("e"))).await.status }
    });
    gate.reached.acquire().await.unwrap().forget();
    impatient.abort();
    assert!(impatient.await.unwrap_err().is_cancelled());
    let again = tokio::spawn(async move { answer(&app, event(&Wire::waiting("e"))).await });
    gate.open.add_permits(1);
    assert_eq!(again.await.unwrap(), (200, String::new()));
    assert_eq!((db.effects("e").await, db.keys().await, gate.runs("e")), (1, 1, 1), "what had begun went on");
}

pub(super) async fn a_success_means_that_every_handler_is_done<S: Webhooks>(db: Arc<Db<S>>) {
    let (engine, gate) = (db.engine(4).await, Arc::new(Gate::default()));
    let second = Route::<S, S::Second>::with_state(Arc::clone(&gate));
    let wants = |incoming: &Incoming| incoming.body.ends_with(b"}") && incoming.header("x-kind") != Some("other");
    let receiver = S::TWO.applying(&engine, signature()).route(apply(&gate).when(wants)).route(second.when(wants));
    let app = app(receiver.keep_header("x-kind".parse().unwrap()));
    assert_eq!(ask(&app, event(&Wire::failing("e", 1))).await.status, 500);
    assert_eq!((db.effects("e").await, db.effects("second e").await), (0, 1), "each has its own transaction");
    assert_eq!(ask(&app, event(&Wire::failing("e", 1))).await.status, 200);
    assert_eq!((db.effects("e").await, db.effects("second e").await, db.keys().await), (1, 1, 2));

    // Of a kind that nobody wants: the sender can do nothing about it, and nothing is kept.
    let mut other = event(&Wire::new("o"));
    other.headers_mut().insert("x-kind", "other".parse().unwrap());
    assert_eq!(answer(&app, other).await, (200, String::new()));
    assert_eq!((db.effects("o").await, db.keys().await), (0, 2));
}

pub(super) async fn an_accepted_event_is_stored_once_and_applied_once<S: Webhooks>(db: Arc<Db<S>>) {
    let (engine, gate) = (db.engine(4).await, Arc::new(Gate::default()));
    let queue = DatabaseQueue::new(engine.pool(), "webhooks").poll(Duration::from_millis(10));
    let app = app(DOOR.accepting(&engine, signature(), queue.clone()));
    let consume = async || {
        let consuming = Consumer::new(&engine, queue.clone()).route(apply::<S>(&gate)).start().await.unwrap();
        consuming.until_settled().await;
        consuming.stop().await;
    };
    for _ in 0..3 {
        assert_eq!(answer(&app, event(&Wire::new("e"))).await, (202, String::new()));
    }
    assert_eq!((db.number("SELECT count(*) FROM idem_queue").await, db.effects("e").await), (1, 0));
    consume().await;
    assert_eq!(answer(&app, event(&Wire::new("e"))).await, (202, String::new()), "after it was applied, too");
    assert_eq!((db.number("SELECT count(*) FROM idem_queue").await, db.effects("e").await), (0, 1));
    assert_eq!(db.keys().await, 2, "one at the door, one at the effect");

    // The door forgets first; the effect does not.
    let old = if S::NAME == "SQLite" { "0" } else { "'2020-01-01'" };
    db.run(&format!("UPDATE idem_key SET claimed_at = {old} WHERE handler = 'tests.door'")).await;
    assert_eq!(Purger::new(&engine).pass().await.unwrap().purged(), 1);
    ask(&app, event(&Wire::new("e"))).await;
    consume().await;
    assert_eq!((db.number("SELECT count(*) FROM idem_queue").await, db.effects("e").await), (0, 1));
}

pub(super) async fn an_event_that_cannot_be_stored_is_not_accepted<S: Webhooks>(db: Arc<Db<S>>) {
    let engine = db.engine(2).await;
    let queue = || DatabaseQueue::new(engine.pool(), "webhooks");
    let by_header = |incoming: &Incoming| incoming.header("x-delivery").map(str::to_owned);
    let named =
        DOOR.accepting(&engine, signature(), queue()).event_id(by_header).keep_header("x-delivery".parse().unwrap());
    let strict = app(STRICT.accepting(&engine, signature(), queue()));
    let (named, app) = (app(named), app(DOOR.accepting(&engine, signature(), queue())));
    let no = |code: &str, status| (status, code.to_owned());
    assert_eq!(answer(&app, signed("no json")).await, no("event_malformed", 400));
    assert_eq!(answer(&app, signed(r#"{"id": 7}"#)).await, no("event_malformed", 400));
    assert_eq!(answer(&app, signed(r#"{"kind": "x"}"#)).await, no("event_without_key", 422));
    assert_eq!(answer(&app, signed(r#"{"id": ""}"#)).await, no("event_without_key", 422));
    assert_eq!(answer(&named, signed(r#"{"id": "e"}"#)).await, no("event_without_key", 422));
    let mut request = signed("no json");
    request.headers_mut().insert("x-delivery", "d".parse().unwrap());
    assert_eq!(ask(&named, request).await.status, 202);
    assert_eq!(ask(&strict, signed(r#"{"id": "s"}"#)).await.status, 202);
    assert_eq!(ask(&strict, signed(r#"{"id": "s"}"#)).await.status, 202);
    assert_eq!(answer(&strict, signed(r#"{"id": "s", "a": 1}"#)).await, no("event_changed", 422));
    assert_eq!((db.keys().await, db.number("SELECT count(*) FROM idem_queue").await), (2, 2));

    db.run("ALTER TABLE idem_queue RENAME TO away").await;
    assert_eq!(ask(&app, signed(r#"{"id": "t"}"#)).await.status, 500);
    assert_eq!(db.keys().await, 2, "no identifier is kept of what was not stored");
    db.run("ALTER TABLE away RENAME TO idem_queue").await;
    assert_eq!(ask(&app, signed(r#"{"id": "t"}"#)).await.status, 202);
    assert_eq!(db.number("SELECT count(*) FROM idem_queue").await, 3);
}

pub(super) async fn what_contradicts_its_declaration_is_refused<S: Webhooks>(db: Arc<Db<S>>) {
    static NOWHERE: WebhookRoute = WebhookRoute::new("nowhere", "POST /nowhere", "nobody");
    static NO_DOOR: WebhookRoute = WebhookRoute::new("nowhere", "POST /nowhere", "nobody").accept("1h");
    let (engine, gate) = (db.engine(2).await, Arc::new(Gate::default()));
    let queue = || DatabaseQueue::new(engine.pool(), "webhooks");
    let tell = Route::<S, S::Tell>::with_state(Arc::clone(&gate));
    let second = Route::<S, S::Second>::with_state(Arc::clone(&gate));
    let table = [
        (NOWHERE.applying(&engine, signature()).route(apply(&gate)), "not declared by `http_route!`"),
        (NO_DOOR.accepting(&engine, signature(), queue()), "not declared by `http_route!`"),
        (S::ONE.applying(&engine, signature()), "has no handler"),
        (S::ONE.applying(&engine, signature()).route(second), "its declaration does not say so"),
        (S::TWO.applying(&engine, signature()).route(apply(&gate)), "is declared to run `tests.second"),
        (S::TELL.applying(&engine, signature()).route(tell), "which is at most once"),
        (S::ONE.accepting(&engine, signature(), queue()), "keeps no identifiers"),
        (DOOR.applying(&engine, signature()).route(apply(&gate)), "declared with `accept`"),
        (DOOR.accepting(&engine, signature(), queue()).route(apply(&gate)), "stores its events"),
    ];
    for (receiver, says) in table {
        let error: Error = receiver.service().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Registry);
        assert!(error.to_string().contains(says), "{error}");
    }
}
