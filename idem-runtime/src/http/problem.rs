//! What a request is told that was not answered by its handler: RFC 9457 problem details.
//!
//! The one table of codes, statuses and words. `docs/http.md` shows it, and a test compares the two.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::signature::SignatureError;
use crate::error::{Error, ErrorKind};
use crate::store::Store;

pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// How long a client is asked to wait before it comes again.
const COME_AGAIN: Duration = Duration::from_secs(1);

/// Why a request was not handed to its handler, or its handler's answer is not what the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    KeyMissing,
    KeyMalformed,
    CallerUnknown,
    KeyReused,
    InFlight,
    BodyTooLarge,
    BodySlow,
    BodyIncomplete,
    Unavailable,
    Failed,
    ResponseUnstorable,
    TransactionUnused,
    Signature(SignatureError),
    EventMalformed,
    EventKeyless,
    EventChanged,
    EventExpired,
}

impl Problem {
    #[cfg(test)]
    pub(super) const ALL: [Self; 19] = [
        Self::KeyMissing,
        Self::KeyMalformed,
        Self::CallerUnknown,
        Self::KeyReused,
        Self::InFlight,
        Self::BodyTooLarge,
        Self::BodySlow,
        Self::BodyIncomplete,
        Self::Unavailable,
        Self::Failed,
        Self::ResponseUnstorable,
        Self::TransactionUnused,
        Self::Signature(SignatureError::Missing("")),
        Self::Signature(SignatureError::Stale),
        Self::Signature(SignatureError::NoMatch),
        Self::EventMalformed,
        Self::EventKeyless,
        Self::EventChanged,
        Self::EventExpired,
    ];

    /// The problem that an error of the engine is to the client. What the error says is for the log alone.
    pub(super) fn of<S: Store>(error: &Error) -> Self {
        match error.kind() {
            // One transaction writes at a time there, so that it says nothing about the key.
            ErrorKind::Busy if S::NAME == "SQLite" => Self::Unavailable,
            ErrorKind::Busy => Self::InFlight,
            ErrorKind::Mismatch => Self::KeyReused,
            ErrorKind::InvalidKey => Self::KeyMalformed,
            ErrorKind::Contention
            | ErrorKind::Commit
            | ErrorKind::CommitUnknown
            | ErrorKind::ReadOnly
            | ErrorKind::Unavailable => Self::Unavailable,
            _ => Self::Failed,
        }
    }

    /// For programs.
    pub(super) const fn code(self) -> &'static str {
        self.row().1
    }

    pub(super) const fn status(self) -> StatusCode {
        self.row().0
    }

    pub(super) const fn comes_again(self) -> bool {
        matches!(self, Self::InFlight | Self::Unavailable)
    }

    /// Whether the same event would end so again.
    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::EventMalformed | Self::EventKeyless | Self::EventChanged | Self::EventExpired)
    }

    pub(super) fn detail(self) -> Cow<'static, str> {
        match self {
            Self::Signature(error) => Cow::Owned(error.to_string()),
            _ => Cow::Borrowed(self.row().2),
        }
    }

    /// The status, the code, and the words.
    const fn row(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::KeyMissing => (
                S::BAD_REQUEST,
                "idempotency_key_missing",
                "this operation needs an Idempotency-Key header; send one that is unique to the operation, such as a UUID",
            ),
            Self::KeyMalformed => (
                S::BAD_REQUEST,
                "idempotency_key_malformed",
                "the Idempotency-Key header is sent once, with 1 to 255 visible ASCII characters, quoted or not",
            ),
            Self::CallerUnknown => {
                (S::UNAUTHORIZED, "caller_unknown", "an Idempotency-Key belongs to a caller, and this one is not known")
            }
            Self::KeyReused => (
                S::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                "this Idempotency-Key was used for another request; send a new key with a new request",
            ),
            Self::InFlight => (
                S::CONFLICT,
                "request_in_flight",
                "a request with this Idempotency-Key is still being handled; send the same request again later",
            ),
            Self::BodyTooLarge => {
                (S::PAYLOAD_TOO_LARGE, "body_too_large", "the body is larger than this operation takes")
            }
            Self::BodySlow => (S::REQUEST_TIMEOUT, "body_slow", "the body did not arrive in time"),
            Self::BodyIncomplete => (S::BAD_REQUEST, "body_incomplete", "the body ended before its end"),
            Self::Unavailable => (
                S::SERVICE_UNAVAILABLE,
                "unavailable",
                "the request was not handled, or nobody can say yet; send the same request again later",
            ),
            Self::Failed => (
                S::INTERNAL_SERVER_ERROR,
                "failed",
                "the request could not be handled; the same request may be sent again",
            ),
            Self::ResponseUnstorable => (
                S::INTERNAL_SERVER_ERROR,
                "response_unstorable",
                "the operation was undone, since its response cannot be stored for a retry",
            ),
            Self::TransactionUnused => (
                S::INTERNAL_SERVER_ERROR,
                "transaction_unused",
                "the operation's handler did not use its transaction; this check runs in development alone",
            ),
            // Its words are the error's own.
            Self::Signature(SignatureError::NoMatch) => (S::UNAUTHORIZED, "signature_mismatch", ""),
            Self::Signature(SignatureError::Stale | SignatureError::FromTheFuture) => {
                (S::BAD_REQUEST, "signature_stale", "")
            }
            Self::Signature(_) => (S::BAD_REQUEST, "signature_unreadable", ""),
            Self::EventMalformed => (
                S::BAD_REQUEST,
                "event_malformed",
                "the event cannot be read; it was not applied, and sending it again cannot help",
            ),
            Self::EventKeyless => (
                S::UNPROCESSABLE_ENTITY,
                "event_without_key",
                "the event has no identifier that tells it from others; it was not applied",
            ),
            Self::EventChanged => (
                S::UNPROCESSABLE_ENTITY,
                "event_changed",
                "an event with this identifier was taken before, with another content; this one was not applied",
            ),
            Self::EventExpired => (
                S::UNPROCESSABLE_ENTITY,
                "event_expired",
                "the event is too old to be told from one that was applied; it was not applied",
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code, detail) = (self.status(), self.code(), self.detail());
        let title = status.canonical_reason().unwrap_or_default();
        let body = serde_json::json!({
            "type": "about:blank", "title": title, "status": status.as_u16(), "code": code, "detail": detail,
        });
        let mut response = (status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if self.comes_again() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(COME_AGAIN.as_secs()));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::Problem;

    #[test]
    fn the_page_has_each_problem_with_its_status_and_code() {
        let page = include_str!("../../../docs/http.md");
        for problem in Problem::ALL {
            let retry = if problem.comes_again() { "yes" } else { "" };
            let row = format!("| {} | `{}` | {retry}", problem.status().as_u16(), problem.code());
            assert!(page.contains(&row), "docs/http.md has no row that begins with {row}");
        }
        let rows = page.lines().filter(|line| line.starts_with("| 4") || line.starts_with("| 5"));
        let rows = rows.filter(|line| line.contains("| `")).count();
        assert_eq!(rows, Problem::ALL.len(), "docs/http.md has a row for what the code cannot answer");
    }
}
