//! What a webhook's route needs to be served.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderName;
use serde::de::DeserializeOwned;

use super::super::signature::Signature;
use super::route::WebhookRoute;
use super::service::WebhookService;
use crate::adapter::{DatabaseQueue, Incoming, Route, Routed, route};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::handler::{Handler, HandlerResult};
use crate::store::Store;

/// Finds the identifier of an event.
pub(super) type EventId = Box<dyn Fn(&Incoming) -> Option<String> + Send + Sync>;

/// A webhook's route that is about to be served. Made by [`WebhookRoute::applying`] and [`WebhookRoute::accepting`].
#[must_use = "nothing is served before `service`"]
pub struct WebhookReceiver<S: Store> {
    pub(super) engine: Engine<S>,
    pub(super) declared: &'static WebhookRoute,
    pub(super) signature: Signature,
    /// In accept mode.
    pub(super) queue: Option<DatabaseQueue<S>>,
    /// In request mode.
    pub(super) routes: Vec<Box<dyn Routed<S>>>,
    pub(super) event_id: Option<EventId>,
    pub(super) body_limit: usize,
    pub(super) body_timeout: Duration,
    pub(super) kept: Vec<HeaderName>,
}

impl<S: Store> WebhookReceiver<S> {
    pub(super) fn new(
        engine: &Engine<S>,
        declared: &'static WebhookRoute,
        signature: Signature,
        queue: Option<DatabaseQueue<S>>,
    ) -> Self {
        Self {
            engine: engine.clone(),
            declared,
            signature,
            queue,
            routes: Vec::new(),
            event_id: None,
            body_limit: 1 << 20,
            body_timeout: Duration::from_secs(30),
            kept: ["content-type", "webhook-id", "webhook-timestamp"].map(HeaderName::from_static).to_vec(),
        }
    }

    /// Every event goes to this handler, decoded as JSON; to several, if this is called several times. Each has its own key
    /// and its own transaction, and the answer is a success when all are done.
    pub fn handler<H>(self) -> Self
    where
        H: Handler<S, State = ()> + 'static,
        H::Message: DeserializeOwned + Send + Sync + 'static,
        <H::Returned as HandlerResult>::Err: fmt::Display,
    {
        self.route(route::<S, H>())
    }

    /// The events that the route takes go to its handler. What no route takes is answered as a success, since the sender
    /// can do nothing about it.
    pub fn route<H>(mut self, route: Route<S, H>) -> Self
    where
        H: Handler<S> + 'static,
        H::Message: Sized + Send + Sync + 'static,
        H::State: Send + Sync + 'static,
        <H::Returned as HandlerResult>::Err: fmt::Display,
    {
        self.routes.push(Box::new(route));
        self
    }

    /// In accept mode, where an event's identifier stands. Default: the one that the signature covers, in Standard Webhooks;
    /// else the member `id` of the JSON body. A header is there if [`keep_header`](Self::keep_header) names it.
    pub fn event_id(mut self, find: impl Fn(&Incoming) -> Option<String> + Send + Sync + 'static) -> Self {
        self.event_id = Some(Box::new(find));
        self
    }

    /// The largest body, in bytes; a larger one is answered 413. Default: 1 MiB.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How long the body may take to arrive; then 408. Default: 30 seconds.
    pub fn body_timeout(mut self, longest: Duration) -> Self {
        self.body_timeout = longest;
        self
    }

    /// One more header of the request that handlers find in [`Incoming`]. Kept by default: `content-type`, `webhook-id`,
    /// `webhook-timestamp`. One that the signature does not cover is anybody's word.
    pub fn keep_header(mut self, name: HeaderName) -> Self {
        self.kept.push(name);
        self
    }

    /// The service that answers the route's requests: `post_service(receiver.service()?)`. Cheap to clone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registry`] where it would not do what the declaration says: without handlers, with one that the
    /// declaration does not name or that is at most once, without one that it names, in the other mode, or for a route that
    /// was not declared by `http_route!`.
    pub fn service(self) -> Result<WebhookService<S>, Error> {
        self.refuse_contradictions()?;
        Ok(WebhookService { receiver: Arc::new(self) })
    }

    fn refuse_contradictions(&self) -> Result<(), Error> {
        let endpoint = self.declared.endpoint();
        let refuse = |detail: String| {
            let detail = format!("the webhook's route `{}` {detail}", endpoint.name);
            Err(Error::new(ErrorKind::Registry).detail(detail))
        };
        if endpoint.place.file.is_empty() {
            return refuse("is not declared by `http_route!`".to_owned());
        }
        match (self.declared.keys(), &self.queue) {
            (Some(keys), Some(_)) if self.engine.registry().get(keys.name) != Some(keys) => {
                return refuse("is not declared by `http_route!`".to_owned());
            }
            (Some(_), Some(_)) if !self.routes.is_empty() => {
                return refuse("stores its events: give its handlers to the `Consumer` of the queue".to_owned());
            }
            (Some(_), Some(_)) => return Ok(()),
            (Some(_), None) => return refuse("is declared with `accept`: serve it by `accepting`".to_owned()),
            (None, Some(_)) => return refuse("keeps no identifiers: declare it with `.accept(\"35d\")`".to_owned()),
            (None, None) => {}
        }
        let routed: Vec<_> = self.routes.iter().map(|route| route.meta().name).collect();
        if routed.is_empty() {
            return refuse("has no handler: call `handler` or `route`".to_owned());
        }
        if let Some(route) = self.routes.iter().find(|route| route.is_at_most_once()) {
            let name = route.meta().name;
            return refuse(format!(
                "runs `{name}`, which is at most once, and the answer would come after it: store the events, with `accept`"
            ));
        }
        if let Some(name) = routed.iter().find(|name| !self.declared.handlers().any(|declared| declared == **name)) {
            return refuse(format!("runs `{name}`, and its declaration does not say so: add `.runs::<_, {name}>()`"));
        }
        if let Some(name) = self.declared.handlers().find(|declared| !routed.contains(declared)) {
            return refuse(format!("is declared to run `{name}` and does not: call `.handler::<{name}>()`"));
        }
        Ok(())
    }
}

impl<S: Store> fmt::Debug for WebhookReceiver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookReceiver")
            .field("route", &self.declared.endpoint().name)
            .field("signature", &self.signature)
            .finish_non_exhaustive()
    }
}
