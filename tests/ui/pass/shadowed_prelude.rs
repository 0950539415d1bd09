//! No prelude, and the names that it would bring stand for something else.

#![no_implicit_prelude]
#![deny(warnings)]

mod core {}
mod std {}
mod alloc {}
mod futures {}
mod inventory {}

mod handlers {
    use ::idem_runtime::{at_most_once, idempotent, naturally_idempotent};
    use ::sqlx::{Sqlite, Transaction};
    use ::std::string::String;

    mod core {}
    mod std {}
    mod sqlx {}
    mod idem_runtime {}

    macro_rules! shadows {
        ($($name:ident)*) => {$(
            #[allow(dead_code)]
            pub(crate) struct $name;
        )*};
    }
    shadows!(Result Ok Err Option Some None Box Vec Future Send Sync Default Engine Key Handler HandlerMeta Outcome);

    macro_rules! shadowed_traits {
        ($($name:ident)*) => {$(
            #[allow(dead_code)]
            trait $name {
                fn clone(&self) {}
                fn into(&self) {}
                fn map(&self) {}
                fn as_ref(&self) {}
            }
            #[allow(dead_code)]
            impl<T: ?::core::marker::Sized> $name for T {}
        )*};
    }
    shadowed_traits!(Clone Into);

    #[allow(unused_macros)]
    macro_rules! concat { ($($any:tt)*) => { compile_error!("the user's") }; }
    #[allow(unused_macros)]
    macro_rules! unimplemented { ($($any:tt)*) => { compile_error!("the user's") }; }
    #[allow(unused_macros)]
    macro_rules! file { ($($any:tt)*) => { compile_error!("the user's") }; }

    type Done<T> = ::core::result::Result<T, ::sqlx::Error>;

    #[allow(dead_code)]
    pub(crate) struct Paid {
        pub(crate) id: String,
    }

    #[idempotent(key(msg.id), fingerprint(msg.id), retention = "7d", replay)]
    pub(crate) async fn keyed(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Done<u8> {
        Done::Ok(7)
    }

    #[idempotent(key(msg.id), retention = "7d", redelivery(broker = "1d"))]
    pub(crate) async fn moved(_tx: &mut Transaction<'_, Sqlite>, mut msg: Paid) -> Done<String> {
        msg.id.push('!');
        Done::Ok(msg.id)
    }

    #[naturally_idempotent(
        reason = "sets the price to the message's value",
        external(provider = "shop", guard = outbox, risk = "the price is sent again")
    )]
    pub(crate) async fn natural(_tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Done<String> {
        Done::Ok(msg.id)
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
    pub(crate) async fn ping(_msg: &Paid) -> Done<()> {
        Done::Ok(())
    }

    impl Paid {
        #[idempotent(key(id), retention = "7d", name = "paid.note")]
        pub(crate) async fn note(&self, _tx: &mut Transaction<'_, Sqlite>, id: u8) -> Done<&str> {
            Done::Ok(&self.id)
        }

        #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "paid.ping")]
        pub(crate) async fn ping(&self, _id: u8) -> Done<()> {
            Done::Ok(())
        }
    }
}

fn main() {
    use ::core::convert::Into;

    let msg = handlers::Paid { id: "1".into() };
    ::std::assert_eq!(handlers::keyed::META.name, "keyed");
    ::std::assert_eq!(handlers::moved::key(&msg).unwrap().as_str(), "1/s:1");
    let _ = (handlers::natural::META, handlers::ping::META);
}
