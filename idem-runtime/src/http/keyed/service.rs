//! What happens to a request.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use tower::Service;

use super::super::body;
use super::super::problem::Problem;
use super::exchange::{Call, Exchange, Rules, expire};
use super::header;
use super::layer::Config;
use crate::clock;
use crate::engine::{Ended, Stop};
use crate::key::Key;
use crate::store::Store;
use crate::telemetry;

/// A handler with a [`KeyedLayer`](super::KeyedLayer) around it.
pub struct KeyedService<S: Store, I> {
    config: Arc<Config<S>>,
    inner: I,
}

impl<S: Store, I> KeyedService<S, I> {
    pub(super) fn new(config: Arc<Config<S>>, inner: I) -> Self {
        Self { config, inner }
    }
}

impl<S: Store, I: Clone> Clone for KeyedService<S, I> {
    fn clone(&self) -> Self {
        Self { config: Arc::clone(&self.config), inner: self.inner.clone() }
    }
}

impl<S: Store, I> fmt::Debug for KeyedService<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedService").field("route", &self.config.route.meta().name).finish_non_exhaustive()
    }
}

impl<S, I> Service<Request<Body>> for KeyedService<S, I>
where
    S: Store,
    I: Service<Request<Body>, Error = Infallible> + Clone + Send + 'static,
    I::Response: IntoResponse,
    I::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The one that is ready goes, and a fresh one stays.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let call: Call = Box::new(move |request| {
            Box::pin(async move {
                match inner.call(request).await {
                    Ok(response) => response.into_response(),
                    Err(never) => match never {},
                }
            })
        });
        let config = Arc::clone(&self.config);
        Box::pin(async move {
            if !config.route.takes(request.method().as_str()) {
                return Ok(call(request).await);
            }
            Ok(config.answer(request, call).await.unwrap_or_else(IntoResponse::into_response))
        })
    }
}

impl<S: Store> Config<S> {
    async fn answer(&self, request: Request<Body>, call: Call) -> Result<Response, Problem> {
        let (parts, body) = request.into_parts();
        let caller = (self.caller)(&parts).filter(|caller| !caller.is_empty()).ok_or(Problem::CallerUnknown)?;
        let key = header::read(&parts.headers)?;
        if key.is_none() && self.route.is_required() {
            return Err(Problem::KeyMissing);
        }
        let body = body::read(body, self.body_limit, self.body_timeout).await?;
        let key = key.map(|key| event_key(&caller, &key, &parts, &body)).transpose()?;
        let _flight = match &key {
            Some(key) => {
                let flight = self.flights.take(key.as_str(), self.route.in_flight()).await;
                Some(flight.ok_or(Problem::InFlight)?)
            }
            None => None,
        };
        self.exchange(Request::from_parts(parts, Body::from(body)), key.as_ref(), call).await
    }

    async fn exchange(&self, request: Request<Body>, key: Option<&Key>, call: Call) -> Result<Response, Problem> {
        let meta = self.route.meta();
        let (is_keyed, response_limit) = (key.is_some(), self.response_limit);
        let rules = Rules { meta, is_keyed, kept: &self.kept, response_limit };
        let mut exchange = Exchange { rules, call: Some((call, request)), response: None };
        let ended = self.engine.deliver(meta, key, &mut exchange).await;
        let response = exchange.response.ok_or(Problem::Failed);
        match ended {
            Ok(Ended::Applied) => {
                let mut response = response?;
                if let (Some(_), Some(retention)) = (key, meta.retention) {
                    let now = clock::wall().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
                    expire(&mut response, now.as_secs(), retention);
                }
                Ok(response)
            }
            Ok(Ended::Duplicate) | Err(Stop::Handler) => response,
            Err(Stop::Engine(error)) => {
                let problem = Problem::of::<S>(&error);
                telemetry::not_answered(meta, problem.code(), &error);
                Err(problem)
            }
        }
    }
}

/// The key of the caller's, with the request as its fingerprint.
fn event_key(caller: &str, key: &str, parts: &Parts, body: &Bytes) -> Result<Key, Problem> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let key = Key::of(&caller, &[&key]).map_err(|_| Problem::KeyMalformed)?;
    Ok(key.with_fingerprint(&[&parts.method.as_str(), &path, &body.as_ref()]))
}
