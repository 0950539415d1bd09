//! Stripe's scheme.

use axum::http::HeaderMap;

use super::{Signature, SignatureError, Verified, seconds, single};

const HEADER: &str = "stripe-signature";

pub(super) fn verify(signature: &Signature, headers: &HeaderMap, body: &[u8]) -> Result<Verified, SignatureError> {
    let malformed = || SignatureError::Malformed(HEADER);
    let (mut time, mut signatures) = (None, Vec::new());
    for item in single(headers, HEADER)?.split(',') {
        let (scheme, value) = item.split_once('=').ok_or_else(malformed)?;
        match scheme.trim_matches(' ') {
            "t" if time.replace(value).is_some() => return Err(malformed()),
            // What is no hexadecimal matches nothing.
            "v1" => signatures.extend(hex::decode(value)),
            _ => {}
        }
    }
    let time = time.ok_or_else(malformed)?;
    let secs = seconds(time).ok_or_else(malformed)?;
    signature.matches(&[time.as_bytes(), b".", body], &signatures)?;
    Ok(Verified { signed_at: Some(signature.near(secs)?), id: None })
}
