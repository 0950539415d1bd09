//! Whether a webhook comes from whom it says: the signature over the raw bytes, before anything is read out of them.
//!
//! One file per scheme. All of them are HMAC-SHA256, compared in constant time.

mod plain;
mod standard;
mod stripe;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::clock;

/// How far the time of a signature may be from now, in both directions; what Stripe's libraries take.
const TOLERANCE: Duration = Duration::from_secs(300);

/// How the requests of one sender are signed. Cheap to clone; its `Debug` form has no secret.
///
/// Several secrets can be given, of which one must match, so that a secret can be changed without a pause.
///
/// ```
/// use idem_runtime::Signature;
///
/// let stripe = Signature::stripe("whsec_new")?.secret("whsec_old")?;
/// let standard = Signature::standard_webhooks("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let github = Signature::hmac_sha256("x-hub-signature-256", "It's a Secret to Everybody")?;
/// # Ok::<(), idem_runtime::SignatureError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Signature {
    scheme: Scheme,
    secrets: Vec<Arc<[u8]>>,
    tolerance: Duration,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

#[derive(Debug, Clone, Copy)]
enum Scheme {
    Stripe,
    Standard,
    Plain { header: &'static str },
}

/// What a signature that holds has said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// When the request was signed; `None` in a scheme that does not say.
    pub signed_at: Option<SystemTime>,
    /// The identifier of the event, which the signature covers; `None` in a scheme without one in the headers.
    pub id: Option<String>,
}

/// Why a request is not taken for its sender's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The header is not there.
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    /// The header is there more than once, and nobody can say which one counts.
    #[error("the header `{0}` is there more than once")]
    Repeated(&'static str),
    /// The header cannot be read.
    #[error("the header `{0}` cannot be read")]
    Malformed(&'static str),
    /// The signature holds, and is too old to be let in again.
    #[error("the signature is too old")]
    Stale,
    /// The signature holds, and is dated too far ahead.
    #[error("the signature is from the future; is the sender's clock fast?")]
    FromTheFuture,
    /// No secret matches.
    #[error("the signature does not match")]
    NoMatch,
    /// A secret is empty, or not in the scheme's form. Met when a [`Signature`] is made, never by a request.
    #[error("the secret is empty or not in the scheme's form")]
    BadSecret,
}

impl Signature {
    /// Stripe's: `Stripe-Signature: t=1492774577,v1=5257a8…`, over the time, a point and the body.
    /// <https://docs.stripe.com/webhooks#verify-manually>
    ///
    /// # Errors
    ///
    /// [`SignatureError::BadSecret`] for an empty secret.
    pub fn stripe(secret: &str) -> Result<Self, SignatureError> {
        Self::new(Scheme::Stripe).secret(secret)
    }

    /// That of [Standard Webhooks](https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md),
    /// with a shared secret: `whsec_` and base64, or the base64 alone. Signatures of other versions are passed over.
    ///
    /// # Errors
    ///
    /// [`SignatureError::BadSecret`] for a secret that is empty or not in base64.
    pub fn standard_webhooks(secret: &str) -> Result<Self, SignatureError> {
        Self::new(Scheme::Standard).secret(secret)
    }

    /// The HMAC-SHA256 of the body in hexadecimal, with or without `sha256=` before it, in this header: GitHub's
    /// `x-hub-signature-256`, and that of many others. It has no time, so that an old request can be sent again by whoever
    /// has seen it; the event's key tells it then.
    ///
    /// # Errors
    ///
    /// [`SignatureError::BadSecret`] for an empty secret.
    pub fn hmac_sha256(header: &'static str, secret: &str) -> Result<Self, SignatureError> {
        Self::new(Scheme::Plain { header }).secret(secret)
    }

    fn new(scheme: Scheme) -> Self {
        Self { scheme, secrets: Vec::new(), tolerance: TOLERANCE, clock: Arc::new(clock::wall) }
    }

    /// Takes the signatures of one more secret.
    ///
    /// # Errors
    ///
    /// [`SignatureError::BadSecret`] for a secret that is empty or not in the scheme's form.
    pub fn secret(mut self, secret: &str) -> Result<Self, SignatureError> {
        let bytes = match self.scheme {
            Scheme::Stripe | Scheme::Plain { .. } => secret.as_bytes().to_vec(),
            Scheme::Standard => {
                let secret = secret.strip_prefix("whsec_").unwrap_or(secret);
                STANDARD.decode(secret).map_err(|_| SignatureError::BadSecret)?
            }
        };
        if bytes.is_empty() {
            return Err(SignatureError::BadSecret);
        }
        self.secrets.push(bytes.into());
        Ok(self)
    }

    /// How far the time of a signature may be from now, in both directions. Default: five minutes. In seconds, as the
    /// schemes' times are.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The clock that the signatures' times are compared with. Default: the machine's.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks the signature of a request, over its body as it came.
    ///
    /// # Errors
    ///
    /// As [`SignatureError`] says.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, SignatureError> {
        match self.scheme {
            Scheme::Stripe => stripe::verify(self, headers, body),
            Scheme::Standard => standard::verify(self, headers, body),
            Scheme::Plain { header } => plain::verify(self, header, headers, body),
        }
    }

    /// Whether one of the signatures is one of the secrets' over these parts. Each is compared in constant time.
    fn matches(&self, parts: &[&[u8]], signatures: &[Vec<u8>]) -> Result<(), SignatureError> {
        let mut matches = false;
        for secret in &self.secrets {
            // An HMAC takes a key of any length.
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { continue };
            parts.iter().for_each(|part| mac.update(part));
            for signature in signatures {
                matches |= mac.clone().verify_slice(signature).is_ok();
            }
        }
        if matches { Ok(()) } else { Err(SignatureError::NoMatch) }
    }

    /// The time of a signature, in seconds since 1970, if it is near enough. Asked after the signature itself: only the
    /// sender is told about our clock.
    fn near(&self, secs: u64) -> Result<SystemTime, SignatureError> {
        let tolerance = self.tolerance.as_secs();
        let now = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if secs > now.saturating_add(tolerance) {
            return Err(SignatureError::FromTheFuture);
        }
        if secs.saturating_add(tolerance) < now {
            return Err(SignatureError::Stale);
        }
        UNIX_EPOCH.checked_add(Duration::from_secs(secs)).ok_or(SignatureError::FromTheFuture)
    }
}

/// The only value of a header, as text.
fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, SignatureError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(SignatureError::Missing(name))?;
    if values.next().is_some() {
        return Err(SignatureError::Repeated(name));
    }
    value.to_str().map_err(|_| SignatureError::Malformed(name))
}

/// Whole seconds without a sign. What does not fit is as far in the future as anything.
fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signature")
            .field("scheme", &self.scheme)
            .field("secrets", &self.secrets.len())
            .field("tolerance", &self.tolerance)
            .finish_non_exhaustive()
    }
}
