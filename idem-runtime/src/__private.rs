//! What generated code may name. Nothing here is public API, and all of it changes without notice.

pub use std::boxed::Box; // Not public API.

pub use inventory; // Not public API: `submit!`.

// Not public API.
pub use crate::engine::{
    Attempt, Cause, CloneProbe, Codec, Forget, Owned, Plan, Remember, Unkeyed, ViaAsRef, ViaClone, ViaError, ViaMove,
    ViaNone, run, run_at_most_once, run_unkeyed,
};
pub use crate::registry::Registered; // Not public API.
pub use crate::tx::TxView; // Not public API.
pub use futures_util::future::BoxFuture; // Not public API.

use crate::key::{FingerprintPart, KeyPart};

/// The one bound that a key's part must pass, so that a wrong one is reported once.
pub fn key_part<T: KeyPart>(part: &T) -> &dyn KeyPart {
    part
}

/// The same for a fingerprint's part.
pub fn fingerprint_part<T: FingerprintPart>(part: &T) -> &dyn FingerprintPart {
    part
}
