//! Requests that carry an `Idempotency-Key`: the response is stored in the transaction of the effect, and replayed.
//!
//! `route.rs` declares, `layer.rs` configures, `service.rs` is what happens to a request, `exchange.rs` what happens to it
//! inside its transaction, and `slot.rs` how the handler gets at that.

mod exchange;
mod header;
mod in_flight;
mod layer;
#[cfg(feature = "utoipa")]
mod openapi;
mod route;
mod service;
mod slot;
mod stored;

pub use layer::KeyedLayer;
pub use route::KeyedRoute;
pub use service::KeyedService;
pub use slot::{KeyedTx, KeyedTxRejection};
