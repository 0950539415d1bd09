//! The key of an event: the value that identifies it within one handler.

mod encode;
mod part;
pub(crate) mod refused;
#[cfg(feature = "cli")]
pub(crate) mod typed;

use std::fmt;
use std::time::SystemTime;

pub use encode::Part;
pub use part::{ByteId, DisplayId, EventTime, KeyPart, by_display, byte_id};

use encode::Encoder;

/// Identifies one event within one handler.
///
/// Made from the parts that the attribute names, by the generated `handler::key(&msg)`. Two events are one exactly when
/// their keys' [`as_str`](Self::as_str) are equal, and those are equal exactly when the parts are, in type and value
/// (beyond 128 bytes by their SHA-256); see `docs/schema.md` for the format.
///
/// ```
/// use idem_runtime::Key;
///
/// let key = Key::of(&"ord_123", &[&7_u32])?;
/// assert_eq!(key.to_string(), "1/s:ord_123/i:7");
/// # Ok::<(), idem_runtime::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    stored: String,
    fingerprint: Option<[u8; 32]>,
    occurred_at: Option<SystemTime>,
}

impl Key {
    /// Makes a key of one part and any number of further parts. A key without parts cannot be written down.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when a part is empty or a nil UUID: every event without an identifier would be the same event.
    pub fn of(head: &dyn KeyPart, tail: &[&dyn KeyPart]) -> Result<Self, KeyError> {
        let mut encoder = Encoder::new();
        for (index, part) in std::iter::once(&head).chain(tail).enumerate() {
            let part = part.part();
            part.refuse_missing(index + 1)?;
            encoder.push(&part);
        }
        Ok(Self { stored: encoder.into_stored(), fingerprint: None, occurred_at: None })
    }

    /// Adds what must be equal in every delivery of the event: another fingerprint under an equal key is a mismatch.
    /// Parts may be empty here.
    #[must_use]
    pub fn with_fingerprint(mut self, parts: &[&dyn FingerprintPart]) -> Self {
        let mut encoder = Encoder::new();
        for part in parts {
            encoder.push(&part.fingerprint_part());
        }
        self.fingerprint = Some(encoder.digest());
        self
    }

    /// Adds the event's own time, so that an event older than its handler's retention is parked instead of applied.
    #[must_use]
    pub fn with_occurred_at(mut self, time: impl EventTime) -> Self {
        self.occurred_at = Some(time.into());
        self
    }

    /// The bytes that stand in the column `event_key`: printable ASCII, at most 128 of them.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.stored
    }

    pub(crate) fn fingerprint(&self) -> Option<&[u8; 32]> {
        self.fingerprint.as_ref()
    }

    pub(crate) fn occurred_at(&self) -> Option<SystemTime> {
        self.occurred_at
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stored)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.stored).finish()
    }
}

/// A value that `fingerprint(…)` can compare: every key part, and raw bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a fingerprint",
    label = "neither a key part nor bytes",
    note = "a fingerprint takes what a key takes, and `[u8]`, `Vec<u8>` or a digest"
)]
pub trait FingerprintPart {
    /// The value as it is written into the fingerprint.
    fn fingerprint_part(&self) -> Part<'_>;
}

impl<T: KeyPart> FingerprintPart for T {
    fn fingerprint_part(&self) -> Part<'_> {
        self.part()
    }
}

impl FingerprintPart for [u8] {
    fn fingerprint_part(&self) -> Part<'_> {
        Part::Bytes(self)
    }
}

impl FingerprintPart for &[u8] {
    fn fingerprint_part(&self) -> Part<'_> {
        Part::Bytes(self)
    }
}

impl FingerprintPart for Vec<u8> {
    fn fingerprint_part(&self) -> Part<'_> {
        Part::Bytes(self)
    }
}

impl<const N: usize> FingerprintPart for [u8; N] {
    fn fingerprint_part(&self) -> Part<'_> {
        Part::Bytes(self)
    }
}

/// Why a message has no usable key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The part at this position, counted from 1, is an empty text or has no bytes.
    #[error("part {position} of the key is empty")]
    Empty {
        /// Which part, counted from 1.
        position: usize,
    },
    /// The part at this position, counted from 1, is the nil UUID, which stands for a missing one.
    #[error("part {position} of the key is the nil UUID")]
    Nil {
        /// Which part, counted from 1.
        position: usize,
    },
}
