//! Accept mode: the event goes into the queue, in one transaction with its identifier.

use std::error::Error as _;

use axum::http::StatusCode;
use serde::Deserialize;
use sqlx::Transaction;

use super::super::problem::Problem;
use super::super::signature::Verified;
use super::receiver::WebhookReceiver;
use crate::adapter::{DatabaseQueue, Incoming};
use crate::engine::{Forget, Plan, prepare};
use crate::error::{Error, Failure};
use crate::key::Key;
use crate::store::Store;
use crate::telemetry;

/// As much of a JSON body as the identifier needs.
#[derive(Deserialize)]
struct Identified {
    id: Option<String>,
}

/// The database's error behind the queue's.
fn cause(error: &Error) -> Option<&sqlx::Error> {
    error.source().and_then(|source| source.downcast_ref())
}

/// Stores the event, unless it is stored or was.
pub(super) async fn store<S: Store>(
    receiver: &WebhookReceiver<S>,
    queue: &DatabaseQueue<S>,
    incoming: &Incoming,
    verified: Verified,
) -> Result<StatusCode, Problem> {
    // The declaration of a receiver with a queue has keys, as it was checked at its start.
    let Some(meta) = receiver.declared.keys() else { return Err(Problem::Failed) };
    let id = receiver.identify(incoming, verified)?;
    let key = || {
        let key = Key::of(&id, &[])?;
        let body = incoming.body.as_slice();
        Ok(if meta.fingerprint.is_empty() { key } else { key.with_fingerprint(&[&body]) })
    };
    let prepared = prepare(Plan::<Result<(), Error>>::keyed(meta, key, cause), Forget, |attempt| {
        let tx: &mut Transaction<'_, S> = attempt.tx();
        Box::pin(queue.enqueue_in(tx, incoming))
    });
    let error = match prepared.run(&receiver.engine).await {
        Ok(_) => return Ok(StatusCode::ACCEPTED),
        Err(Failure::Handler(failed)) => failed.error,
        Err(Failure::Engine(error)) => error,
    };
    let problem = Problem::of_event(error.kind());
    telemetry::webhook_failed(meta.name, problem.code(), problem.is_final(), &error.what());
    Err(problem)
}

impl<S: Store> WebhookReceiver<S> {
    fn identify(&self, incoming: &Incoming, verified: Verified) -> Result<String, Problem> {
        let id = match &self.event_id {
            Some(find) => find(incoming),
            None if verified.id.is_some() => verified.id,
            None => serde_json::from_slice::<Identified>(&incoming.body).map_err(|_| Problem::EventMalformed)?.id,
        };
        id.ok_or(Problem::EventKeyless)
    }
}
