//! A webhook in request mode whose handler looks at more than the key: another content under it, and events that are too old.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post_service;
use http_body_util::BodyExt;
use idem_runtime::{Signature, WebhookRoute, http_route, idempotent};
use idem_tests::Db;
use serde::Deserialize;
use sqlx::{Sqlite, Transaction};
use tower::ServiceExt;

#[derive(Debug, Deserialize)]
struct Paid {
    id: String,
    cents: i64,
    at: u64,
}

#[idempotent(
    key = "event.id",
    fingerprint = "event.cents",
    occurred_at = "UNIX_EPOCH + Duration::from_secs(event.at)",
    retention = "7d",
    name = "tests.strict"
)]
async fn strict(tx: &mut Transaction<'_, Sqlite>, event: &Paid) -> sqlx::Result<()> {
    let effect = sqlx::query("INSERT INTO effect (note) VALUES (?)").bind(&event.id);
    effect.execute(&mut **tx).await?;
    Ok(())
}

http_route! {
    static STRICT: WebhookRoute =
        WebhookRoute::new("tests.webhook.strict", "POST /strict", "the provider").runs::<Sqlite, strict>();
}

/// A scheme without a time, so that the event is all that can be old.
fn signature() -> Signature {
    Signature::hmac_sha256("x-signature", "secret").unwrap()
}

#[tokio::test]
async fn another_content_and_an_event_that_is_too_old_are_refused_for_good() {
    Db::<Sqlite>::test(async |db| {
        let receiver = STRICT.applying(&db.engine(2).await, signature()).handler::<strict>();
        let app = Router::new().route("/strict", post_service(receiver.service().unwrap()));
        #[allow(clippy::disallowed_methods, reason = "the events' own times are the sender's to make up")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let old = now - 8 * 86_400;
        for (id, cents, at, status, code) in [
            ("e", 1, now, 200, ""),
            ("e", 1, now, 200, ""),
            ("e", 2, now, 422, "event_changed"),
            ("old", 1, old, 422, "event_expired"),
        ] {
            let body = format!(r#"{{"id":"{id}","cents":{cents},"at":{at}}}"#);
            let request = Request::post("/strict").header("x-signature", crate::payment_webhook::hmac("secret", &body));
            let answer = app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
            assert_eq!(answer.status(), status, "{id} {cents}");
            let said = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&said).contains(code), "{said:?}");
        }
        assert_eq!((db.effects("e").await, db.effects("old").await, db.keys().await), (1, 0, 1));
    })
    .await;
}
