//! What generated code may name. Nothing here is public API, and all of it changes without notice.

pub use std::boxed::Box; // Not public API.

pub use inventory; // Not public API: `submit!`.

// Not public API.
pub use crate::engine::{
    Attempt, Cause, CloneProbe, Codec, Forget, Owned, Plan, Remember, Run, ViaAsRef, ViaClone, ViaError, ViaMove,
    ViaNone, run,
};
pub use crate::registry::Registered; // Not public API.
pub use crate::tx::TxView; // Not public API.
pub use futures_util::future::BoxFuture; // Not public API.

use crate::key::refused::{Kind, Parts, Passes};
use crate::key::{FingerprintPart, KeyPart, Part};

/// The one place where a key's part is judged, so that a wrong one is reported once.
pub fn key_part<T, K>(part: &T) -> &dyn KeyPart
where
    Parts: Kind<T, K> + Passes<T, K>,
{
    Parts::erased(part)
}

/// The same for the field of a type that derives `KeyPart`, which has no size if the field has none.
pub fn field_part<T: ?Sized, K>(field: &T) -> Part<'_>
where
    Parts: Kind<T, K> + Passes<T, K>,
{
    Parts::written(field)
}

/// The same for a fingerprint's part.
pub fn fingerprint_part<T: FingerprintPart>(part: &T) -> &dyn FingerprintPart {
    part
}
