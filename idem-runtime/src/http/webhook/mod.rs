//! Webhooks: verified, applied by handlers or stored for later, and answered when that is known.
//!
//! `service.rs` is what happens to a request, `apply.rs` and `door.rs` what happens to its event in the two modes.

mod apply;
mod door;
mod receiver;
mod route;
mod service;

pub use receiver::WebhookReceiver;
pub use route::WebhookRoute;
pub use service::WebhookService;
