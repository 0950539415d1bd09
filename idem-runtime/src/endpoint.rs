//! HTTP endpoints whose requests are applied once: what the catalog shows of them.

use std::fmt;
use std::time::Duration;

use crate::handler::{HandlerMeta, Place};

/// One endpoint, as its declaration submits it.
#[derive(Debug)]
#[doc(hidden)] // Not public API: submitted by generated code.
pub struct RegisteredEndpoint {
    pub endpoint: &'static Endpoint,
    /// What is kept for it, if it has keys of its own.
    pub keys: Option<&'static HandlerMeta>,
}

inventory::collect!(RegisteredEndpoint);

/// An HTTP endpoint whose requests are applied once. Collected in the [`Registry`](crate::Registry) of every program that
/// links it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Its name, which scopes its keys as a handler's does. What is known of the keys stands in its [`HandlerMeta`].
    pub name: &'static str,
    /// Where it is declared.
    pub place: Place,
    /// The methods and the path, as in `POST /payments`.
    pub route: &'static str,
    /// What makes two requests one.
    pub kind: EndpointKind,
    /// The names of the handlers behind it, as far as they are declared; empty ones are none.
    pub handlers: [&'static str; 8],
}

/// What makes two requests of an endpoint one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointKind {
    /// The `Idempotency-Key` that the client sends.
    Keyed {
        /// Who a key belongs to, in words.
        scope: &'static str,
        /// Whether a request without a key is refused.
        required: bool,
        /// What a request meets whose key is in flight.
        in_flight: InFlight,
    },
    /// The sender's own identifier of the event.
    Webhook {
        /// Who sends.
        source: &'static str,
        /// Whether events are stored first and applied later.
        accepts: bool,
    },
}

/// What a request meets whose key is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InFlight {
    /// It is told to come again: 409 with `Retry-After`.
    Reject,
    /// It waits for the other to end, at most this long, and is rejected then.
    Wait(Duration),
}

impl fmt::Display for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reject => f.write_str("rejected"),
            Self::Wait(longest) => write!(f, "waits for {longest:?} at most"),
        }
    }
}

#[cfg(feature = "catalog")]
impl Endpoint {
    /// The endpoints that are linked into the program, by name.
    pub(crate) fn all() -> Vec<&'static Self> {
        let mut all: Vec<_> = inventory::iter::<RegisteredEndpoint>().map(|registered| registered.endpoint).collect();
        all.sort_unstable_by_key(|endpoint| (endpoint.name, endpoint.place.file, endpoint.place.line));
        all.dedup();
        all
    }

    /// Whether it is the endpoint of these keys, or of this handler.
    pub(crate) fn is_of(&self, meta: &HandlerMeta) -> bool {
        (self.name == meta.name && self.place == meta.place) || self.handlers.contains(&meta.name)
    }
}
