//! The types that are refused as parts of a key in words of their own.
//!
//! A text belongs to a trait, and [`KeyPart`] has the one for all types. Others can come in only where the compiler
//! misses another trait, so it is asked twice: first which [`Kind`] of part a type is, which for the refused ones it
//! always finds; then whether that kind [passes](Passes), which a refused one would if its type implemented the trait
//! with the words, and no type does.
//!
//! The simpler shapes read worse on rustc 1.95. With `impl IsKeyPart<C> for f64 where …` beside a blanket
//! `impl<T: KeyPart> IsKeyPart for T` two implementations fail, and of two the compiler names neither's reason. With
//! such implementations of `KeyPart` itself it goes on to say that `KeyPart` is implemented for `f64`, and lists
//! `Duration` to whoever passes a type of their own.

use std::time::{Duration, Instant, SystemTime};

use super::{KeyPart, Part};

/// Of whom both are asked. Not of the type itself: of two bounds that fail on one type the compiler reports the outer
/// one, which is not the one with the words.
#[derive(Debug)]
pub enum Parts {}

/// `T` is a part of the kind `K`.
pub trait Kind<T: ?Sized, K> {
    /// The part as a key takes it. The default is never called, and would be refused as empty.
    fn erased(_: &T) -> &dyn KeyPart
    where
        T: Sized,
    {
        &""
    }

    /// The part as it is written.
    fn written(_: &T) -> Part<'_> {
        Part::Text("")
    }
}

/// The kind of what is allowed.
#[derive(Debug)]
pub enum Identifier {}

impl<T: KeyPart + ?Sized> Kind<T, Identifier> for Parts {
    fn erased(part: &T) -> &dyn KeyPart
    where
        T: Sized,
    {
        part
    }

    fn written(part: &T) -> Part<'_> {
        part.part()
    }
}

/// A part of type `T` and kind `K` may be part of a key. For any `Self`, since the compiler would else add that
/// something "is implemented for `Parts`"; and `T` comes first, since it blames the argument that mentions the first.
pub trait Passes<T: ?Sized, K> {}

impl<S, T: ?Sized> Passes<T, Identifier> for S {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "a floating-point number does not always compare exactly",
    note = "write what identifies the event: `key(msg.order_id)`; a number that does is a whole one, such as `number: u64`",
    note = "an event whose number is rounded differently in a redelivery would have another key, and its effect would happen twice"
)]
pub trait ComparesExactly {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "may be absent, and all events without it would share one key",
    note = "take it out before: make the field a `{P}`, so that a message without it cannot be decoded, or park events without it before they reach the handler",
    note = "the first event without a value would be applied, and all others dropped as its duplicates"
)]
pub trait AlwaysPresent<P> {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "raw bytes are mostly a body or a digest, which identify contents and not an event",
    note = "write what identifies the event: `key(msg.order_id)`; if the producer chose these bytes as its identifier: `key(idem_runtime::byte_id(&msg.id))`",
    note = "two events may have equal contents, and the second would be dropped; contents that must agree under one key go into `fingerprint(…)`"
)]
pub trait NamesTheEvent {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "a time says when, and not which event",
    note = "write what identifies the event: `key(msg.order_id)`; the event's own time goes into `occurred_at = msg.created_at`",
    note = "two events of one moment would share a key and the second would be dropped; a time that is taken anew for each delivery makes it a new event"
)]
pub trait SaysWhich {}

/// A kind of part that is refused, and its types, themselves and behind a reference.
macro_rules! refused {
    ($kind:ident $words:ident: $($type:ty)*) => {
        #[doc = concat!("The kind of what does not implement [`", stringify!($words), "`].")]
        #[derive(Debug)]
        pub struct $kind<P: ?Sized>(std::marker::PhantomData<P>);

        impl<S, T: ?Sized, P: $words + ?Sized> Passes<T, $kind<P>> for S {}

        $(
            impl Kind<$type, $kind<$type>> for Parts {}
            impl Kind<&$type, $kind<$type>> for Parts {}
        )*
    };
}

refused!(FloatPart ComparesExactly: f32 f64);
refused!(BytesPart NamesTheEvent: [u8] Vec<u8>);
refused!(ClockPart SaysWhich: Instant SystemTime Duration);

impl<const N: usize> Kind<[u8; N], BytesPart<[u8; N]>> for Parts {}
impl<const N: usize> Kind<&[u8; N], BytesPart<[u8; N]>> for Parts {}

/// The kind of what does not implement [`AlwaysPresent`].
#[derive(Debug)]
pub struct OptionPart<P>(std::marker::PhantomData<P>);

impl<S, T: ?Sized, P> Passes<T, OptionPart<P>> for S where Option<P>: AlwaysPresent<P> {}
impl<P> Kind<Option<P>, OptionPart<P>> for Parts {}
impl<P> Kind<&Option<P>, OptionPart<P>> for Parts {}
