//! What a keyed route is configured to do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::request::Parts;
use tower::Layer;

use super::in_flight::Flights;
use super::route::KeyedRoute;
use super::service::KeyedService;
use crate::engine::Engine;
use crate::store::Store;

type Caller = Box<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// Runs a route's handler once for each `Idempotency-Key` of a caller, and replays its response to the retries. Made by
/// [`KeyedRoute::layer`]; cheap to clone.
///
/// The handler takes its transaction as [`KeyedTx`](super::KeyedTx). Its response is stored with the key if its status is
/// below 500, and not one of 401, 407, 408, 409, 423, 425 and 429, which say that trying again may end better; all other
/// responses roll back, are handed on as they are, and leave nothing behind.
#[must_use = "a layer does nothing until it is put around a handler"]
pub struct KeyedLayer<S: Store> {
    pub(super) config: Arc<Config<S>>,
}

pub(super) struct Config<S: Store> {
    pub(super) engine: Engine<S>,
    pub(super) route: &'static KeyedRoute,
    pub(super) caller: Arc<Caller>,
    pub(super) body_limit: usize,
    pub(super) body_timeout: Duration,
    pub(super) response_limit: usize,
    pub(super) kept: Vec<HeaderName>,
    pub(super) flights: Arc<Flights>,
}

impl<S: Store> KeyedLayer<S> {
    pub(super) fn new(engine: &Engine<S>, route: &'static KeyedRoute, caller: Caller) -> Self {
        let config = Config {
            engine: engine.clone(),
            route,
            caller: Arc::new(caller),
            body_limit: 1 << 20,
            body_timeout: Duration::from_secs(30),
            response_limit: 1 << 20,
            kept: vec![CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, LOCATION],
            flights: Arc::default(),
        };
        Self { config: Arc::new(config) }
    }

    /// The largest body of a request, in bytes; a larger one is answered 413. Default: 1 MiB. It is read whole before the
    /// handler runs, since it is part of the fingerprint.
    pub fn body_limit(self, bytes: usize) -> Self {
        self.with(|config| config.body_limit = bytes)
    }

    /// How long the body may take to arrive; then 408. Default: 30 seconds.
    pub fn body_timeout(self, longest: Duration) -> Self {
        self.with(|config| config.body_timeout = longest)
    }

    /// The largest body of a response that is stored, in bytes. Default: 1 MiB. A larger one, or one whose length is not
    /// known beforehand, undoes the operation and is answered 500, with an error in the log.
    pub fn response_limit(self, bytes: usize) -> Self {
        self.with(|config| config.response_limit = bytes)
    }

    /// One more header of the response that a retry gets as well. Kept by default: `cache-control`, `content-disposition`,
    /// `content-language`, `content-type`, `etag`, `location`.
    pub fn keep_header(self, name: HeaderName) -> Self {
        self.with(|config| config.kept.push(name))
    }

    fn with(mut self, change: impl FnOnce(&mut Config<S>)) -> Self {
        // A layer that was cloned before is left as it was.
        let mut config = Arc::try_unwrap(self.config).unwrap_or_else(|shared| Config {
            engine: shared.engine.clone(),
            caller: Arc::clone(&shared.caller),
            kept: shared.kept.clone(),
            flights: Arc::clone(&shared.flights),
            ..*shared
        });
        change(&mut config);
        self.config = Arc::new(config);
        self
    }
}

impl<S: Store> Clone for KeyedLayer<S> {
    fn clone(&self) -> Self {
        Self { config: Arc::clone(&self.config) }
    }
}

impl<S: Store> fmt::Debug for KeyedLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLayer").field("route", &self.config.route.meta().name).finish_non_exhaustive()
    }
}

impl<S: Store, I> Layer<I> for KeyedLayer<S> {
    type Service = KeyedService<S, I>;

    fn layer(&self, inner: I) -> Self::Service {
        KeyedService::new(Arc::clone(&self.config), inner)
    }
}
