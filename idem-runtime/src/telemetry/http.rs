//! The events of the HTTP side.

use std::fmt::Display;

use tokio::task::JoinError;
use tracing::{debug, error, info, warn};

use crate::error::{Error, ErrorKind};
use crate::handler::HandlerMeta;

/// A request that got a problem instead of its handler's response.
pub(crate) fn not_answered(meta: &HandlerMeta, code: &str, error: &Error) {
    let kind = error.kind();
    if !matches!(kind, ErrorKind::Busy | ErrorKind::Mismatch) {
        warn!(target: "idem", route = meta.name, code, ?kind, "the request was answered with a problem");
    }
}

/// A handler whose effect, if it has one, is not in the transaction of its key.
pub(crate) fn transaction_unused(meta: &HandlerMeta) {
    error!(
        target: "idem", route = meta.name,
        "the handler answered with success and never took its transaction: what it wrote is not in one transaction with \
         its key, and can happen twice; let it take a `KeyedTx` and write through that"
    );
}

/// A response that a retry could not be given.
pub(crate) fn response_unstorable(meta: &HandlerMeta, limit: usize) {
    error!(
        target: "idem", route = meta.name, limit,
        "the response is longer than the limit, or does not say how long it is: the operation was rolled back; raise \
         `response_limit`, or answer with less"
    );
}

/// A handler that asks for a transaction that is not there.
pub(crate) fn no_transaction(rejection: &impl Display) {
    error!(target: "idem", %rejection, "a handler asked for the transaction of its request and got none");
}

/// A webhook's request that is not taken for its sender's.
pub(crate) fn signature_refused(route: &str, reason: &impl Display) {
    warn!(
        target: "idem", route, %reason,
        "a request was refused for its signature; if its sender is the right one, compare the secrets and the clocks"
    );
}

/// An event that nobody wants.
pub(crate) fn webhook_unrouted(route: &str) {
    info!(target: "idem", route, "no handler of the route takes this event; it was answered as a success");
}

/// An event that was not applied by one of its handlers, or not stored.
pub(crate) fn webhook_failed(route: &str, code: &str, is_final: bool, text: &str) {
    if is_final {
        error!(
            target: "idem", route, code,
            "an event was refused, and sending it again cannot help: compare what the provider shows of it with the handler"
        );
    } else {
        warn!(target: "idem", route, code, "an event was not applied, and its sender was told to send it again");
    }
    debug!(target: "idem", route, code, error = text, "why the event was not applied");
}

/// The work for an event ended without an answer.
pub(crate) fn webhook_cut_off(route: &str, ended: &JoinError) {
    error!(
        target: "idem", route, panicked = ended.is_panic(),
        "an event's request ended without an outcome, by a panic outside of the handlers or the end of the program; its \
         sender was told to send it again"
    );
}
