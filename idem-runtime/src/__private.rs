//! What generated code may name. Nothing here is public API, and all of it changes without notice.

pub use std::boxed::Box; // Not public API.

pub use inventory; // Not public API: `submit!`.

pub use crate::__idem_place as place; // Not public API.
#[cfg(feature = "catalog")]
pub use crate::catalog::assert_catalog; // Not public API.
pub use crate::endpoint::RegisteredEndpoint; // Not public API.
pub use crate::engine::{Attempt, Cause, CloneProbe, Codec, Forget, Owned, Plan, Prepared, Remember}; // Not public API.
pub use crate::engine::{SliceReturned, prepare, run, run_at_most_once, slice}; // Not public API.
pub use crate::registry::Registered; // Not public API.
pub use crate::tx::TxView; // Not public API.
pub use futures_util::future::BoxFuture; // Not public API.

use crate::key::refused::{Kind, Parts, Passes};
use crate::key::{FingerprintPart, KeyPart, Part};

/// What method look-up needs to see, without names that could meet the user's.
pub mod via {
    pub use crate::engine::{ViaAsRef as _, ViaClone as _, ViaError as _, ViaMove as _, ViaNone as _}; // Not public API.
}

/// Where the attribute stands.
#[doc(hidden)] // Not public API: `place!` of this module.
#[macro_export]
macro_rules! __idem_place {
    ($function:literal) => {
        $crate::Place::new(::core::concat!(::core::module_path!(), "::", $function), ::core::file!(), ::core::line!())
    };
}

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
