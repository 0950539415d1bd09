//! Derived parts in a crate that shadows every name that generated code could lean on, and denies what it could trip
//! over; and what a generic type asks of its parameters.

#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, elided_lifetimes_in_paths)]
#![deny(single_use_lifetimes, unused_lifetimes, unused_results, missing_debug_implementations, unnameable_types)]
#![deny(rust_2018_idioms, let_underscore_drop, trivial_casts, trivial_numeric_casts, explicit_outlives_requirements)]

mod core {}
mod std {}
mod idem_runtime {}
mod idem_macros {}

/// Re-exports the runtime, as a crate of common dependencies does.
pub mod common {
    pub use ::idem_runtime as idem;
}

/// Parts among names of theirs.
pub mod parts {
    use ::idem_runtime::KeyPart;
    use ::std::marker::PhantomData;
    use ::std::string::String;

    #[allow(dead_code)]
    #[derive(Debug)]
    struct Part;
    #[allow(dead_code)]
    #[derive(Debug)]
    enum Verdict {
        Ok,
        Err,
        Some,
        None,
    }
    #[allow(unused_imports)]
    use Verdict::*;

    /// Is a newtype.
    #[derive(Debug, KeyPart)]
    pub struct OrderId(pub String);

    /// Has a name for its field, which generated code could want.
    #[derive(Debug, KeyPart)]
    pub struct Named {
        /// The number.
        pub field: u64,
    }

    /// Has a raw name.
    #[derive(Debug, KeyPart)]
    pub struct Raw {
        /// The number.
        pub r#type: u64,
    }

    /// Borrows.
    #[derive(Debug, KeyPart)]
    pub struct Borrowed<'a>(pub &'a str);

    /// Has no size.
    #[derive(Debug, KeyPart)]
    pub struct Unsized(str);

    /// Is generic over what it holds, and over what it does not.
    #[derive(Debug, KeyPart)]
    pub struct Id<I, T: ?::core::marker::Sized, const N: usize>(pub PhantomData<T>, pub I)
    where
        T: ::core::fmt::Debug;

    /// Says of which type its identifiers are.
    pub trait Entity {
        /// The identifier.
        type Id;
    }

    impl Entity for Named {
        type Id = u64;
    }

    /// Holds a type that only its parameter knows.
    #[derive(Debug, KeyPart)]
    pub struct Of<E: Entity>(pub E::Id);

    /// Holds a part whatever its parameter is.
    #[derive(Debug, KeyPart)]
    pub struct Outer<T: ::core::fmt::Debug>(pub Id<u8, T, 3>);

    /// Has no data.
    #[derive(Debug, Clone, Copy, KeyPart)]
    #[key(crate = crate::common::idem)]
    #[non_exhaustive]
    pub enum Kind {
        /// Is written as it is.
        Paid,
        /// Keeps its text.
        #[key(rename = "Refunded")]
        Reimbursed,
        /// Is called as the prelude's.
        None,
        /// Looks as if it had data.
        Void {},
        /// Should not be used.
        #[deprecated]
        Old,
    }

    macro_rules! made {
        ($name:ident $type:ty, $kind:ident $variant:ident $text:literal) => {
            /// Is made by a macro.
            #[derive(Debug, KeyPart)]
            pub struct $name(pub $type);

            /// Is made by a macro.
            #[derive(Debug, Clone, Copy, KeyPart)]
            pub enum $kind {
                /// Is named by its caller.
                #[key(rename = $text)]
                $variant,
                /// Is not.
                Other,
            }
        };
    }
    made!(Made u64, MadeKind Paid "paid");
}

fn key(part: &dyn ::idem_runtime::KeyPart) -> ::std::string::String {
    ::std::string::ToString::to_string(&::idem_runtime::Key::of(part, &[]).unwrap())
}

fn main() {
    use ::core::assert_eq;
    use ::core::convert::Into;
    use ::core::marker::PhantomData;
    use parts::{Borrowed, Id, Kind, Made, MadeKind, Named, Of, OrderId, Outer, Raw};

    struct NoPart;
    impl ::core::fmt::Debug for NoPart {
        fn fmt(&self, _: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            ::core::result::Result::Ok(())
        }
    }

    assert_eq!(key(&OrderId("ord_1".into())), "1/s:ord_1");
    assert_eq!(key(&Named { field: 7 }), "1/i:7");
    assert_eq!(key(&Raw { r#type: 7 }), "1/i:7");
    assert_eq!(key(&Borrowed("ord_1")), "1/s:ord_1");
    assert_eq!(key(&Id::<_, NoPart, 7>(PhantomData, "ord_1")), "1/s:ord_1");
    assert_eq!(key(&Of::<Named>(7)), "1/i:7");
    assert_eq!(key(&Outer::<NoPart>(Id(PhantomData, 7))), "1/i:7");
    assert_eq!(key(&Kind::Paid), "1/s:Paid");
    assert_eq!(key(&Kind::Reimbursed), "1/s:Refunded");
    assert_eq!(key(&Kind::None), "1/s:None");
    assert_eq!(key(&Kind::Void {}), "1/s:Void");
    assert_eq!(key(&Made(7)), "1/i:7");
    assert_eq!(key(&MadeKind::Paid), "1/s:paid");
    assert_eq!(key(&MadeKind::Other), "1/s:Other");
}
