//! Writes down every delivery that the provider has signed: what it was about and how it ended.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use idem_runtime::Signature;
use serde::Serialize;
use sqlx::SqlitePool;

use crate::event::Event;

#[derive(Clone)]
pub(crate) struct Witness {
    pool: SqlitePool,
    signature: Signature,
}

/// A delivery that is over.
#[derive(Debug, Serialize)]
pub(crate) struct Delivery {
    event: String,
    kind: String,
    cents: i64,
    /// The status; none where the provider had hung up.
    answer: Option<i64>,
}

impl Witness {
    pub(crate) async fn new(pool: &SqlitePool, signature: Signature) -> sqlx::Result<Self> {
        let table = "CREATE TABLE IF NOT EXISTS delivery (number INTEGER PRIMARY KEY, event TEXT NOT NULL,
                     kind TEXT NOT NULL, cents INTEGER NOT NULL, answer INTEGER) STRICT";
        sqlx::query(table).execute(pool).await?;
        Ok(Self { pool: pool.clone(), signature })
    }

    pub(crate) async fn deliveries(&self) -> sqlx::Result<Vec<Delivery>> {
        let deliveries = "SELECT event, kind, cents, answer FROM delivery ORDER BY number";
        let rows: Vec<(String, String, i64, Option<i64>)> = sqlx::query_as(deliveries).fetch_all(&self.pool).await?;
        let deliveries = rows.into_iter();
        Ok(deliveries.map(|(event, kind, cents, answer)| Delivery { event, kind, cents, answer }).collect())
    }

    /// How many there were, and the cents of all of them.
    pub(crate) async fn totals(&self) -> sqlx::Result<(i64, i64)> {
        let totals = "SELECT count(*), coalesce(sum(cents), 0) FROM delivery";
        sqlx::query_as(totals).fetch_one(&self.pool).await
    }

    async fn note(&self, event: &Event, answer: Option<u16>) {
        let cents = event.payment.as_ref().map_or(0, |payment| payment.cents);
        let note = sqlx::query("INSERT INTO delivery (event, kind, cents, answer) VALUES (?, ?, ?, ?)");
        let note = note.bind(&event.id).bind(&event.kind).bind(cents).bind(answer);
        if let Err(error) = note.execute(&self.pool).await {
            eprintln!("a delivery of {} is missing in the figures: {error}", event.id);
        }
    }
}

/// Around the webhook's service, which reads the body itself: what it has read is looked at when it has answered.
pub(crate) async fn observe(State(witness): State<Witness>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let read = Arc::new(Mutex::new(Vec::new()));
    let observed = Observed { witness, headers: parts.headers.clone(), read: Arc::clone(&read), is_over: false };
    let body = body.map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            read.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(data);
        }
        frame
    });
    let response = next.run(Request::from_parts(parts, Body::new(body))).await;
    observed.answered(response.status().as_u16()).await;
    response
}

/// A request; dropped before it was answered when the provider hangs up.
struct Observed {
    witness: Witness,
    headers: axum::http::HeaderMap,
    read: Arc<Mutex<Vec<u8>>>,
    is_over: bool,
}

impl Observed {
    async fn answered(mut self, status: u16) {
        self.is_over = true;
        if let Some(event) = self.event() {
            self.witness.note(&event, Some(status)).await;
        }
    }

    /// The event, if the provider has signed it.
    fn event(&self) -> Option<Event> {
        let body = take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner));
        self.witness.signature.verify(&self.headers, &body).ok()?;
        serde_json::from_slice(&body).ok()
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if !self.is_over
            && let Some(event) = self.event()
        {
            let witness = self.witness.clone();
            tokio::spawn(async move { witness.note(&event, None).await });
        }
    }
}
