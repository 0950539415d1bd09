//! The documentation that is generated from the registry, and the check that a committed one is up to date.

mod drift;
mod file;
mod forms;
mod handlers;
mod text;

use idem_runtime::{Catalog, HandlerMeta};

/// A catalog of handlers that a test changes as it likes.
fn catalog(handlers: &[HandlerMeta]) -> Catalog {
    Catalog::of_handlers(handlers.iter().map(|meta| &*Box::leak(Box::new(*meta))))
}

/// A handler in which something is different.
fn but(mut meta: HandlerMeta, change: impl FnOnce(&mut HandlerMeta)) -> HandlerMeta {
    change(&mut meta);
    meta
}
