//! The declaration of a keyed route.

use std::time::Duration;

use axum::http::request::Parts;

use super::super::declare::{is_name, is_route};
use super::layer::KeyedLayer;
use crate::endpoint::{Endpoint, EndpointKind, InFlight};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::handler::{HandlerMeta, Place, Semantics};
use crate::policy::Policy;
use crate::retention::Retention;
use crate::store::Store;

const KEY: &[&str] = &["caller", "Idempotency-Key"];

const FINGERPRINT: &[&str] = &["method", "path and query", "body"];

/// A route whose requests carry an `Idempotency-Key`, declared by [`http_route!`](crate::http_route).
///
/// The declaration is known to the purge, to the catalog and to the command line like a handler's.
#[derive(Debug, Clone, Copy)]
#[must_use = "a route is declared by `http_route!`"]
pub struct KeyedRoute {
    meta: HandlerMeta,
    endpoint: Endpoint,
}

impl KeyedRoute {
    /// A route of this name, which is persisted and scopes its keys as a handler's does (1 to 128 of `A-Za-z0-9._:/-`), and
    /// these methods and path, as in `POST /payments` or `POST,PATCH /payments/{id}`. Requests of other methods pass.
    ///
    /// # Panics
    ///
    /// When the name is none, or the route has no method or path; in a constant that is a compile error.
    pub const fn new(name: &'static str, route: &'static str) -> Self {
        assert!(is_name(name), "a route's name is 1 to 128 of `A-Za-z0-9._:/-`");
        assert!(is_route(route), "a route is written as in `POST /payments`: the methods, a space, the path");
        let place = Place::new("", "", 0);
        let meta = HandlerMeta::new(name, place, Semantics::Idempotent).fingerprint(FINGERPRINT).replay().pinned();
        let kind = EndpointKind::Keyed { scope: "caller", required: true, in_flight: InFlight::Reject };
        Self { meta, endpoint: Endpoint { name, place, route, kind, handlers: [""; 8] } }
    }

    /// How long keys and responses are kept: longer than clients retry. As for the attribute, `"24h"` or `"7d"`.
    ///
    /// # Panics
    ///
    /// When the text cannot be read or means no time at all; in a constant that is a compile error.
    #[track_caller]
    pub const fn retention(mut self, text: &str) -> Self {
        match Retention::parse(text) {
            Ok(retention) => self.meta = self.meta.key(KEY, retention),
            Err(error) => panic!("{}", error.text()),
        }
        self
    }

    /// The same by a policy that handlers share, with the time for which clients retry.
    pub const fn policy(mut self, name: &'static str, policy: &'static Policy) -> Self {
        self.meta = self.meta.policy(KEY, name, policy);
        self
    }

    /// Who a key belongs to, in words for the catalog: `account`, `API key`. Default: `caller`.
    pub const fn scope(mut self, words: &'static str) -> Self {
        if let EndpointKind::Keyed { required, in_flight, .. } = self.endpoint.kind {
            self.endpoint.kind = EndpointKind::Keyed { scope: words, required, in_flight };
        }
        self
    }

    /// Takes requests without a key as well. They run in a transaction, and nothing of them is kept.
    pub const fn optional(mut self) -> Self {
        if let EndpointKind::Keyed { scope, in_flight, .. } = self.endpoint.kind {
            self.endpoint.kind = EndpointKind::Keyed { scope, required: false, in_flight };
        }
        self
    }

    /// Has a request wait whose key is in flight, at most this long, instead of rejecting it at once. It holds no
    /// connection to the database while it waits for another request of this process.
    pub const fn wait_in_flight(mut self, longest: Duration) -> Self {
        if let EndpointKind::Keyed { scope, required, .. } = self.endpoint.kind {
            self.endpoint.kind = EndpointKind::Keyed { scope, required, in_flight: InFlight::Wait(longest) };
        }
        self
    }

    #[doc(hidden)] // Not public API: called by `http_route!`.
    #[track_caller]
    pub const fn at(mut self, place: Place, docs: &[&'static str]) -> Self {
        assert!(self.meta.retention.is_some(), "a route says how long it keeps its keys: `.retention(\"24h\")`");
        self.meta.place = place;
        self.meta.summary = if docs.is_empty() { "" } else { docs[0].trim_ascii() };
        self.endpoint.place = place;
        self
    }

    pub(super) const fn meta(&'static self) -> &'static HandlerMeta {
        &self.meta
    }

    #[doc(hidden)] // Not public API: called by `http_route!`.
    pub const fn keys(&'static self) -> Option<&'static HandlerMeta> {
        Some(&self.meta)
    }

    #[doc(hidden)] // Not public API: called by `http_route!`.
    pub const fn endpoint(&'static self) -> &'static Endpoint {
        &self.endpoint
    }

    /// The layer that goes around the route's handler: `post(create).layer(CREATE.layer(&engine, caller)?)`.
    ///
    /// `caller` says whose request it is, from what authentication has left in the request; `None` is answered 401. Two
    /// callers never meet each other's keys. It runs before the handler, so it must not need the body.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registry`] for a route that was not declared by `http_route!`: nobody would purge its keys.
    pub fn layer<S: Store>(
        &'static self,
        engine: &Engine<S>,
        caller: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Result<KeyedLayer<S>, Error> {
        if engine.registry().get(self.meta.name) != Some(&self.meta) {
            let detail = format!("the route `{}` is not declared by `http_route!`", self.meta.name);
            return Err(Error::new(ErrorKind::Registry).detail(detail));
        }
        Ok(KeyedLayer::new(engine, self, Box::new(caller)))
    }

    pub(super) fn is_required(&self) -> bool {
        matches!(self.endpoint.kind, EndpointKind::Keyed { required: true, .. })
    }

    pub(super) fn in_flight(&self) -> InFlight {
        match self.endpoint.kind {
            EndpointKind::Keyed { in_flight, .. } => in_flight,
            EndpointKind::Webhook { .. } => InFlight::Reject,
        }
    }

    /// Whether a method is among the route's.
    pub(super) fn takes(&self, method: &str) -> bool {
        let methods = self.endpoint.route.split_once(' ').map_or("", |(methods, _)| methods);
        methods.split(',').any(|one| one == method)
    }
}
