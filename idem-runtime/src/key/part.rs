//! What may be part of a key.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use super::encode::Part;

/// A value that can be part of a key: it identifies an event, always in the same way.
///
/// Implemented for text, whole numbers, `bool`, `char` and [`Uuid`](uuid::Uuid), and for references and boxes of them.
/// Not implemented, on purpose: floats (they do not compare exactly), `Option` (all events without a value would share
/// one key), raw bytes and collections (bodies, digests, unordered maps) and clock types.
///
/// Derive it for a newtype or an enum of your own; [the macro of the same name](macro@crate::KeyPart) says what it
/// takes:
///
/// ```
/// use idem_runtime::{Key, KeyPart};
///
/// #[derive(KeyPart)]
/// struct OrderId(String);
///
/// assert_eq!(Key::of(&OrderId("ord_1".into()), &[])?.as_str(), "1/s:ord_1");
/// # Ok::<(), idem_runtime::KeyError>(())
/// ```
///
/// Where the identifier is not the only field, implement it by delegating to the field that is:
///
/// ```
/// use idem_runtime::{Key, KeyPart, Part};
///
/// struct Order {
///     id: u64,
///     lines: Vec<String>,
/// }
///
/// impl KeyPart for Order {
///     fn part(&self) -> Part<'_> {
///         self.id.part()
///     }
/// }
///
/// assert_eq!(Key::of(&Order { id: 7, lines: vec!["tea".into()] }, &[])?.as_str(), "1/i:7");
/// # Ok::<(), idem_runtime::KeyError>(())
/// ```
///
/// What it returns is persisted: returning something else for the same event later makes that event new again.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "not an identifier that always compares exactly",
    note = "a key part is text, a whole number, `bool`, `char` or `Uuid`: write the field that identifies the event, as in `key(msg.order_id)`",
    note = "a type of yours becomes one by `#[derive(KeyPart)]`, if it is a newtype or an enum without data",
    note = "for a foreign type that prints its identifier use `by_display(&value)`, for an identifier in bytes `byte_id(&bytes)`"
)]
pub trait KeyPart {
    /// The value as it is written into the key.
    fn part(&self) -> Part<'_>;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl KeyPart for $type {
            fn part(&self) -> Part<'_> {
                Part::Integer(i128::from(*self))
            }
        }

        impl KeyPart for std::num::NonZero<$type> {
            fn part(&self) -> Part<'_> {
                Part::Integer(i128::from(self.get()))
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64 i128);

impl KeyPart for u128 {
    fn part(&self) -> Part<'_> {
        i128::try_from(*self).map_or(Part::Large(*self), Part::Integer)
    }
}

impl KeyPart for usize {
    fn part(&self) -> Part<'_> {
        // Lossless: no platform of Rust's has a wider `usize`.
        Part::Integer(*self as i128)
    }
}

impl KeyPart for isize {
    fn part(&self) -> Part<'_> {
        Part::Integer(*self as i128)
    }
}

impl KeyPart for bool {
    fn part(&self) -> Part<'_> {
        Part::Bool(*self)
    }
}

impl KeyPart for char {
    fn part(&self) -> Part<'_> {
        Part::Char(*self)
    }
}

impl KeyPart for str {
    fn part(&self) -> Part<'_> {
        Part::Text(self)
    }
}

impl KeyPart for String {
    fn part(&self) -> Part<'_> {
        Part::Text(self)
    }
}

impl KeyPart for Cow<'_, str> {
    fn part(&self) -> Part<'_> {
        Part::Text(self)
    }
}

impl KeyPart for uuid::Uuid {
    fn part(&self) -> Part<'_> {
        Part::Uuid(*self)
    }
}

macro_rules! delegates {
    ($($type:ty)*) => {$(
        impl<T: KeyPart + ?Sized> KeyPart for $type {
            fn part(&self) -> Part<'_> {
                (**self).part()
            }
        }
    )*};
}

delegates!(&T Box<T> Rc<T> Arc<T>);

/// A foreign type that prints its own identifier, as a key part; made by [`by_display`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DisplayId(String);

/// Takes what `value` prints as a part of the key, for foreign types that have no [`KeyPart`] of their own.
///
/// The printed form is persisted. A type whose printed form may change between releases makes its events new again.
///
/// ```
/// use idem_runtime::{Key, by_display};
///
/// let address = std::net::Ipv4Addr::LOCALHOST;
/// assert_eq!(Key::of(&by_display(&address), &[])?.as_str(), "1/s:127.0.0.1");
/// # Ok::<(), idem_runtime::KeyError>(())
/// ```
pub fn by_display<T: fmt::Display + ?Sized>(value: &T) -> DisplayId {
    DisplayId(value.to_string())
}

impl KeyPart for DisplayId {
    fn part(&self) -> Part<'_> {
        Part::Text(&self.0)
    }
}

impl fmt::Debug for DisplayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DisplayId").field(&self.0).finish()
    }
}

/// An identifier that is made of bytes, as a key part; made by [`byte_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByteId<'a>(&'a [u8]);

/// Takes bytes that the producer chose to identify the event as a part of the key. Never a body, nor a digest of one.
///
/// ```
/// use idem_runtime::{Key, byte_id};
///
/// let object_id = [0x65_u8, 0x0f, 0xa1];
/// assert_eq!(Key::of(&byte_id(&object_id), &[])?.as_str(), "1/x:650fa1");
/// # Ok::<(), idem_runtime::KeyError>(())
/// ```
#[must_use]
pub fn byte_id(bytes: &[u8]) -> ByteId<'_> {
    ByteId(bytes)
}

impl KeyPart for ByteId<'_> {
    fn part(&self) -> Part<'_> {
        Part::Bytes(self.0)
    }
}

/// The event's own time, for `occurred_at`: [`SystemTime`], or any type that converts into it, such as chrono's
/// `DateTime`, time's `OffsetDateTime` or jiff's `Timestamp`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no event time",
    label = "not an instant on the calendar",
    note = "`occurred_at` takes a `std::time::SystemTime` or what converts into it; for seconds since 1970 write `std::time::UNIX_EPOCH + std::time::Duration::from_secs(…)`"
)]
pub trait EventTime: Into<SystemTime> {}

impl<T: Into<SystemTime>> EventTime for T {}
