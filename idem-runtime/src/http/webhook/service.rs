//! What happens to a webhook's request.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use tower::Service;
use tracing::Instrument;

use super::super::body;
use super::super::problem::Problem;
use super::receiver::WebhookReceiver;
use super::{apply, door};
use crate::adapter::Incoming;
use crate::store::Store;
use crate::telemetry;

/// A webhook's route at work. Made by [`WebhookReceiver::service`]; cheap to clone.
///
/// What it answers, and when, stands in `docs/http.md`. A sender that hangs up does not stop what has begun: its next
/// delivery waits for that, and is a duplicate.
#[must_use = "a service does nothing until it is put on a path"]
pub struct WebhookService<S: Store> {
    pub(super) receiver: Arc<WebhookReceiver<S>>,
}

impl<S: Store> Clone for WebhookService<S> {
    fn clone(&self) -> Self {
        Self { receiver: Arc::clone(&self.receiver) }
    }
}

impl<S: Store> fmt::Debug for WebhookService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookService").field("route", &self.receiver.declared.endpoint().name).finish_non_exhaustive()
    }
}

impl<S: Store> Service<Request<Body>> for WebhookService<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let receiver = Arc::clone(&self.receiver);
        Box::pin(async move {
            let answered = answer(receiver, request).await;
            Ok(answered.map_or_else(IntoResponse::into_response, IntoResponse::into_response))
        })
    }
}

async fn answer<S: Store>(receiver: Arc<WebhookReceiver<S>>, request: Request<Body>) -> Result<StatusCode, Problem> {
    let (parts, body) = request.into_parts();
    let body = body::read(body, receiver.body_limit, receiver.body_timeout).await?;
    let name = receiver.declared.endpoint().name;
    // Nothing is read out of the body, and nothing is stored, before it is known whose it is.
    let verified = receiver.signature.verify(&parts.headers, &body).map_err(|error| {
        telemetry::signature_refused(name, &error);
        Problem::Signature(error)
    })?;
    let incoming = receiver.incoming(&parts.headers, body.into());
    // A task of its own: the sender can hang up, and its next delivery waits for this one.
    let working = tokio::spawn(
        async move {
            match &receiver.queue {
                Some(queue) => door::store(&receiver, queue, &incoming, verified).await,
                None => apply::apply(&receiver, &incoming).await,
            }
        }
        .in_current_span(),
    );
    working.await.unwrap_or_else(|ended| {
        telemetry::webhook_cut_off(name, &ended);
        Err(Problem::Failed)
    })
}

impl<S: Store> WebhookReceiver<S> {
    fn incoming(&self, headers: &HeaderMap, body: Vec<u8>) -> Incoming {
        let mut incoming = Incoming::new(body);
        for name in &self.kept {
            // Text alone, as from every broker.
            if let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) {
                incoming = incoming.with_header(name.as_str(), value);
            }
        }
        incoming
    }
}
