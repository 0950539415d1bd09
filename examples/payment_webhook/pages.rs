//! What can be looked at: the figures, the deliveries, and a page that shows both.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
use sqlx::SqlitePool;

use crate::report::Report;
use crate::witness::{Delivery, Witness};

/// Where the figures come from.
struct Source {
    credits: SqlitePool,
    witness: Witness,
}

type Failed = (StatusCode, String);

pub(crate) fn pages(credits: &SqlitePool, witness: Witness) -> Router {
    Router::new()
        .route("/", get(Html(include_str!("page.html"))))
        .route("/figures", get(figures))
        .route("/deliveries", get(deliveries))
        .with_state(Arc::new(Source { credits: credits.clone(), witness }))
}

async fn figures(State(source): State<Arc<Source>>) -> Result<Json<Report>, Failed> {
    let (deliveries, cents) = source.witness.totals().await.map_err(|error| failed(&error.to_string()))?;
    let report = Report::read(&source.credits, deliveries, cents).await;
    report.map(Json).map_err(|stop| failed(&stop.with_causes()))
}

async fn deliveries(State(source): State<Arc<Source>>) -> Result<Json<Vec<Delivery>>, Failed> {
    source.witness.deliveries().await.map(Json).map_err(|error| failed(&error.to_string()))
}

fn failed(why: &str) -> Failed {
    eprintln!("the figures cannot be read: {why}");
    (StatusCode::SERVICE_UNAVAILABLE, "the figures cannot be read".to_owned())
}
