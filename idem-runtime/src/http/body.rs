//! Reading a request's body: whole, within a limit and a time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::problem::Problem;

/// Reads the whole body, or says what is wrong with it.
pub(super) async fn read(body: Body, limit: usize, longest: Duration) -> Result<Bytes, Problem> {
    match tokio::time::timeout(longest, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::BodyTooLarge),
        Ok(Err(_)) => Err(Problem::BodyIncomplete),
        Err(_) => Err(Problem::BodySlow),
    }
}
