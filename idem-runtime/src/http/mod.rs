//! The HTTP side: webhooks that come in, and requests that carry an `Idempotency-Key`.
//!
//! An edge like the adapters: it knows the engine and is known by nobody. Webhooks also know the consumer's routes, and the
//! database queue.

mod body;
mod declare;
mod keyed;
mod problem;
mod signature;
mod webhook;

pub use keyed::{KeyedLayer, KeyedRoute, KeyedService, KeyedTx, KeyedTxRejection};
pub use signature::{Signature, SignatureError, Verified};
pub use webhook::{WebhookReceiver, WebhookRoute, WebhookService};
