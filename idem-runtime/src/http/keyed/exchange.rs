//! One request inside its transaction: the handler's call, and what its response comes to.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body as HttpBody, Bytes, HttpBody as _};
use axum::http::{HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Limited};
use sqlx::Transaction;

use super::super::problem::Problem;
use super::slot::Slot;
use super::stored;
use crate::engine::{Body, Lent, Verdict, panic_text};
use crate::handler::HandlerMeta;
use crate::retention::Retention;
use crate::store::{KeyRow, Store};
use crate::telemetry;

/// Says that a response is an earlier request's.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// When the key, and with it the stored response, may be forgotten.
pub(super) const EXPIRES: HeaderName = HeaderName::from_static("idempotency-key-expires");

/// Calls the handler, whatever its type.
pub(super) type Call = Box<dyn FnOnce(Request<HttpBody>) -> BoxFuture<'static, Response> + Send>;

pub(super) struct Exchange<'a> {
    pub(super) rules: Rules<'a>,
    pub(super) call: Option<(Call, Request<HttpBody>)>,
    pub(super) response: Option<Response>,
}

/// What becomes of a response.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) meta: &'static HandlerMeta,
    pub(super) is_keyed: bool,
    pub(super) kept: &'a [HeaderName],
    pub(super) response_limit: usize,
}

impl Rules<'_> {
    /// The handler's response as it goes out, and what it means for the transaction.
    async fn judge(self, response: Response, was_taken: bool) -> (Response, Verdict) {
        let rolled_back = |response| (response, Verdict::Failed { contention: false });
        if !is_final(response.status()) {
            return rolled_back(response);
        }
        let succeeded = response.status().is_success() || response.status().is_redirection();
        if succeeded && !was_taken {
            telemetry::transaction_unused(self.meta);
            if cfg!(debug_assertions) {
                return rolled_back(Problem::TransactionUnused.into_response());
            }
        }
        let (parts, body) = response.into_parts();
        if !self.is_keyed {
            return (Response::from_parts(parts, body), Verdict::Done { result: None });
        }
        let Some(body) = whole(body, self.response_limit).await else {
            telemetry::response_unstorable(self.meta, self.response_limit);
            return rolled_back(Problem::ResponseUnstorable.into_response());
        };
        match stored::write(parts.status, &parts.headers, self.kept, &body) {
            Ok(stored) => {
                let response = Response::from_parts(parts, HttpBody::from(body));
                (response, Verdict::Done { result: Some(stored) })
            }
            Err(error) => (Problem::ResponseUnstorable.into_response(), Verdict::Unwritable(error)),
        }
    }
}

impl<S: Store> Body<S> for Exchange<'_> {
    fn borrows(&self) -> bool {
        false
    }

    fn run<'t>(&'t mut self, _: Transaction<'t, S>) -> BoxFuture<'t, (Option<Transaction<'t, S>>, Verdict)> {
        unreachable!("it owns its connection")
    }

    fn run_lent(&mut self, lent: Lent<S>) -> BoxFuture<'_, (Option<Lent<S>>, Verdict)> {
        let Some((call, mut request)) = self.call.take() else {
            unreachable!("it runs once, as `can_run_again` says");
        };
        let (slot, rules) = (Slot::new(lent), self.rules);
        request.extensions_mut().insert(slot.clone());
        Box::pin(async move {
            // The transaction is rolled back and everything the handler owned is gone: nothing broken can be seen.
            let called = AssertUnwindSafe(async { call(request).await }).catch_unwind().await;
            let (lent, was_taken) = slot.close();
            let (response, verdict) = match called {
                Ok(response) => rules.judge(response, was_taken).await,
                Err(panic) => (Problem::Failed.into_response(), Verdict::Panicked(panic_text(&*panic))),
            };
            self.response = Some(response);
            (lent, verdict)
        })
    }

    fn seen(&mut self, row: KeyRow) -> Result<(), serde_json::Error> {
        let Some(mut response) = row.result.as_deref().and_then(stored::read) else {
            return Err(serde::de::Error::custom("it is no response of this release's form"));
        };
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        if let Some(retention) = self.rules.meta.retention {
            expire(&mut response, u64::try_from(row.claimed_micros / 1_000_000).unwrap_or(0), retention);
        }
        self.response = Some(response);
        Ok(())
    }

    fn can_run_again(&self) -> bool {
        self.call.is_some()
    }
}

/// Publishes when the key may be forgotten, for one that was claimed at this second.
pub(super) fn expire(response: &mut Response, claimed_secs: u64, retention: Retention) {
    let at = UNIX_EPOCH + Duration::from_secs(claimed_secs.saturating_add(retention.as_secs()));
    if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(at)) {
        response.headers_mut().insert(EXPIRES, date);
    }
}

/// Whether the same request would be answered so again: what is not stored can be tried again.
fn is_final(status: StatusCode) -> bool {
    status.as_u16() < 500 && !matches!(status.as_u16(), 401 | 407 | 408 | 409 | 423 | 425 | 429)
}

/// The body, if it says how long it is and that is not too long.
async fn whole(body: HttpBody, limit: usize) -> Option<Bytes> {
    body.size_hint().exact()?;
    let collected = Limited::new(body, limit).collect().await.ok()?;
    Some(collected.to_bytes())
}
