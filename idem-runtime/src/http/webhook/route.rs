//! The declaration of a webhook's route.

use super::super::declare::{is_name, is_route};
use super::super::signature::Signature;
use super::receiver::WebhookReceiver;
use crate::adapter::DatabaseQueue;
use crate::endpoint::{Endpoint, EndpointKind};
use crate::engine::Engine;
use crate::handler::{Handler, HandlerMeta, Place, Semantics};
use crate::policy::Policy;
use crate::retention::Retention;
use crate::store::Store;

const KEY: &[&str] = &["event id"];

const FINGERPRINT: &[&str] = &["body"];

/// A route that a provider sends its events to, declared by [`http_route!`](crate::http_route).
///
/// Either its handlers apply an event before the answer, in [request mode](Self::applying), or the event is stored, answered,
/// and applied later by a [`Consumer`](crate::Consumer), in [accept mode](Self::accept).
#[derive(Debug, Clone, Copy)]
#[must_use = "a route is declared by `http_route!`"]
pub struct WebhookRoute {
    /// What is kept of the events that were stored; `None` in request mode, where the handlers keep their own.
    keys: Option<HandlerMeta>,
    endpoint: Endpoint,
}

impl WebhookRoute {
    /// A route of this name, which is persisted and scopes its keys as a handler's does (1 to 128 of `A-Za-z0-9._:/-`), of
    /// this method and path, as in `POST /webhook`, and of this sender, in words for the catalog: `Stripe`.
    ///
    /// # Panics
    ///
    /// When the name is none, the route has no method or path, or the sender is empty; in a constant that is a compile
    /// error.
    pub const fn new(name: &'static str, route: &'static str, source: &'static str) -> Self {
        assert!(is_name(name), "a route's name is 1 to 128 of `A-Za-z0-9._:/-`");
        assert!(is_route(route), "a route is written as in `POST /webhook`: the method, a space, the path");
        assert!(!source.is_empty(), "a webhook's route says who sends: `Stripe`");
        let kind = EndpointKind::Webhook { source, accepts: false };
        Self { keys: None, endpoint: Endpoint { name, place: Place::new("", "", 0), route, kind, handlers: [""; 8] } }
    }

    /// Names a handler that applies the route's events, for the catalog. In request mode each of them is named.
    ///
    /// # Panics
    ///
    /// For the ninth; in a constant that is a compile error.
    pub const fn runs<S: Store, H: Handler<S>>(mut self) -> Self {
        let mut index = 0;
        while index < self.endpoint.handlers.len() && !self.endpoint.handlers[index].is_empty() {
            index += 1;
        }
        assert!(index < self.endpoint.handlers.len(), "a webhook's route has at most 8 handlers");
        self.endpoint.handlers[index] = H::META.name;
        self
    }

    /// Accept mode: events are stored and answered at once, and applied later. For handlers that are slower than the sender
    /// is patient.
    ///
    /// An event's identifier is kept for so long, `"7d"` or `"35d"`: longer than the sender delivers it again. A delivery
    /// within that time is answered as the first, and not stored again.
    ///
    /// # Panics
    ///
    /// When the text cannot be read or means no time at all; in a constant that is a compile error.
    #[track_caller]
    pub const fn accept(mut self, retention: &str) -> Self {
        match Retention::parse(retention) {
            Ok(retention) => self.keys = Some(self.door().key(KEY, retention)),
            Err(error) => panic!("{}", error.text()),
        }
        self.accepting_kind()
    }

    /// The same by a policy that handlers share, with the time for which the sender delivers again.
    pub const fn accept_policy(mut self, name: &'static str, policy: &'static Policy) -> Self {
        self.keys = Some(self.door().policy(KEY, name, policy));
        self.accepting_kind()
    }

    /// In accept mode, compares the bodies of deliveries of one event: another body under an identifier that was stored is
    /// answered 422, instead of being taken for the same event. Not for senders whose bodies change between deliveries, as
    /// Stripe's can.
    ///
    /// # Panics
    ///
    /// Before [`accept`](Self::accept); in a constant that is a compile error.
    pub const fn fingerprint(mut self) -> Self {
        match self.keys {
            Some(keys) => self.keys = Some(keys.fingerprint(FINGERPRINT)),
            None => panic!("`fingerprint` comes after `accept`; in request mode it is the handler's, `fingerprint(…)`"),
        }
        self
    }

    const fn door(&self) -> HandlerMeta {
        HandlerMeta::new(self.endpoint.name, self.endpoint.place, Semantics::Idempotent).pinned()
    }

    const fn accepting_kind(mut self) -> Self {
        if let EndpointKind::Webhook { source, .. } = self.endpoint.kind {
            self.endpoint.kind = EndpointKind::Webhook { source, accepts: true };
        }
        self
    }

    #[doc(hidden)] // Not public API: called by `http_route!`.
    pub const fn at(mut self, place: Place, docs: &[&'static str]) -> Self {
        if let Some(mut keys) = self.keys {
            keys.place = place;
            keys.summary = if docs.is_empty() { "" } else { docs[0].trim_ascii() };
            self.keys = Some(keys);
        }
        self.endpoint.place = place;
        self
    }

    #[doc(hidden)] // Not public API: called by `http_route!`.
    pub const fn keys(&'static self) -> Option<&'static HandlerMeta> {
        self.keys.as_ref()
    }

    #[doc(hidden)] // Not public API: called by `http_route!`.
    pub const fn endpoint(&'static self) -> &'static Endpoint {
        &self.endpoint
    }

    /// Request mode: handlers apply the event, and then it is answered.
    pub fn applying<S: Store>(&'static self, engine: &Engine<S>, signature: Signature) -> WebhookReceiver<S> {
        WebhookReceiver::new(engine, self, signature, None)
    }

    /// Accept mode: the event is stored in this queue, in one transaction with its identifier, and then it is answered. The
    /// queue is in the engine's database; a [`Consumer`](crate::Consumer) of it runs the handlers.
    pub fn accepting<S: Store>(
        &'static self,
        engine: &Engine<S>,
        signature: Signature,
        queue: DatabaseQueue<S>,
    ) -> WebhookReceiver<S> {
        WebhookReceiver::new(engine, self, signature, Some(queue))
    }

    /// The handlers that were named.
    pub(super) fn handlers(&self) -> impl Iterator<Item = &'static str> {
        self.endpoint.handlers.into_iter().filter(|name| !name.is_empty())
    }
}
