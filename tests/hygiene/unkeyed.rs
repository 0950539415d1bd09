//! Functions without a key.

use ::durable::{at_most_once, naturally_idempotent};
use ::std::string::String;

use crate::{Paid, Result, Tx};

/// Sets.
#[naturally_idempotent(
    reason = "sets the price to the message's value",
    external(provider = "shop", guard = outbox, risk = "the price is sent again"),
    crate = ::durable
)]
pub async fn set(tx: &mut Tx<'_>, msg: &Paid) -> Result<u8> {
    let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
    Result::Ok(7)
}

/// Sets with a moved message and a state.
///
/// # Errors
///
/// Those of the database.
#[naturally_idempotent(reason = "sets the price to the message's value", crate = ::durable)]
pub async fn set_moved<T>(tx: &mut ::sqlx::SqliteConnection, Paid { id, .. }: Paid, state: &T) -> Result<String>
where
    T: ::core::fmt::Debug + ::core::marker::Sync,
{
    let _done = ::sqlx::query("SELECT ?").bind(::std::format!("{state:?}")).execute(tx).await?;
    Result::Ok(id)
}

/// Pings.
#[at_most_once(reason = "the next ping tells as much", loss = "a single ping", crate = ::durable)]
pub async fn ping(msg: &Paid, state: &str) -> Result<usize> {
    let length = ::core::future::ready(msg.id.len()).await;
    Result::Ok(length.saturating_add(state.len()))
}

/// Pings, with a moved message.
#[at_most_once(reason = "the next ping tells as much", loss = "a single ping", crate = crate::common::idem)]
pub async fn ping_moved<T: ::core::marker::Send>(msg: T) -> Result<T> {
    ::core::future::ready(Result::Ok(msg)).await
}
