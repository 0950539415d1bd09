//! Handlers that a `macro_rules!` makes.

use crate::{Paid, Result, Tx};

/// Makes a handler of each kind.
macro_rules! handlers {
    ($($(#[$attr:meta])* $keyed:ident by $key:literal, $set:ident, $ping:ident, $keeps:expr_2021;)*) => {
        $(
            $(#[$attr])*
            #[::durable::idempotent(key = $key, retention = $keeps, crate = ::durable)]
            pub async fn $keyed(tx: &mut Tx<'_>, msg: &Paid) -> Result<i64> {
                let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
                Result::Ok(msg.cents)
            }

            $(#[$attr])*
            #[::durable::naturally_idempotent(reason = "sets the price to the message's value", crate = ::durable)]
            pub async fn $set(tx: &mut Tx<'_>, msg: Paid) -> Result<Paid> {
                let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
                Result::Ok(msg)
            }

            $(#[$attr])*
            #[::durable::at_most_once(
                reason = "the next ping tells as much",
                loss = "a single ping",
                crate = ::durable
            )]
            pub async fn $ping(msg: &Paid) -> Result<i64> {
                ::core::future::ready(Result::Ok(msg.cents)).await
            }
        )*
    };
}

handlers! {
    /// Is made of a text.
    made by "msg.id, msg.cents", set_by_macro, ping_by_macro, "7d";
    /// Is made of a constant.
    made_again by "msg.id", set_again, ping_again, ::durable::Retention::days(7);
}
