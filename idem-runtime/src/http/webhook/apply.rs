//! Request mode: the handlers apply the event, and the answer says how that ended.

use axum::http::StatusCode;

use super::super::problem::Problem;
use super::receiver::WebhookReceiver;
use crate::adapter::{Handled, Incoming};
use crate::error::ErrorKind;
use crate::store::Store;
use crate::telemetry;

/// Applies an event by every handler that takes it. Those that are done stay done: the next delivery finds duplicates of
/// them.
pub(super) async fn apply<S: Store>(receiver: &WebhookReceiver<S>, incoming: &Incoming) -> Result<StatusCode, Problem> {
    let name = receiver.declared.endpoint().name;
    let mut calls = Vec::new();
    for route in receiver.routes.iter().filter(|route| route.takes(incoming)) {
        match route.prepare(&receiver.engine, incoming) {
            Ok(call) => calls.push(call),
            Err(error) => {
                telemetry::webhook_failed(name, Problem::EventMalformed.code(), true, &error.to_string());
                return Err(Problem::EventMalformed);
            }
        }
    }
    if calls.is_empty() {
        telemetry::webhook_unrouted(name);
    }
    let mut worst: Option<Problem> = None;
    for call in calls {
        if let Handled::Failed { kind, text, .. } = call.await {
            let problem = kind.map_or(Problem::Failed, Problem::of_event);
            telemetry::webhook_failed(name, problem.code(), problem.is_final(), &text);
            // It is delivered again as long as that can help one of the handlers.
            worst = Some(worst.map_or(problem, |worst| if worst.is_final() { problem } else { worst }));
        }
    }
    worst.map_or(Ok(StatusCode::OK), Err)
}

impl Problem {
    /// What a failure of the engine's is to the sender of an event. What the error says is for the log alone.
    pub(super) fn of_event(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidKey => Self::EventKeyless,
            ErrorKind::Mismatch => Self::EventChanged,
            ErrorKind::Expired => Self::EventExpired,
            ErrorKind::Malformed => Self::EventMalformed,
            ErrorKind::Busy
            | ErrorKind::Contention
            | ErrorKind::Commit
            | ErrorKind::CommitUnknown
            | ErrorKind::ReadOnly
            | ErrorKind::Unavailable => Self::Unavailable,
            _ => Self::Failed,
        }
    }
}
