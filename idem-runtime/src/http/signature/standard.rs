//! The scheme of Standard Webhooks.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Signature, SignatureError, Verified, seconds, single};

const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
const SIGNATURE: &str = "webhook-signature";

pub(super) fn verify(signature: &Signature, headers: &HeaderMap, body: &[u8]) -> Result<Verified, SignatureError> {
    let id = single(headers, ID)?;
    if id.is_empty() {
        return Err(SignatureError::Malformed(ID));
    }
    let time = single(headers, TIMESTAMP)?;
    let secs = seconds(time).ok_or(SignatureError::Malformed(TIMESTAMP))?;
    let mut signatures = Vec::new();
    for item in single(headers, SIGNATURE)?.split(' ').filter(|item| !item.is_empty()) {
        let (version, value) = item.split_once(',').ok_or(SignatureError::Malformed(SIGNATURE))?;
        if version == "v1" {
            // What is no base64 matches nothing.
            signatures.extend(STANDARD.decode(value));
        }
    }
    signature.matches(&[id.as_bytes(), b".", time.as_bytes(), b".", body], &signatures)?;
    Ok(Verified { signed_at: Some(signature.near(secs)?), id: Some(id.to_owned()) })
}
