//! Names of the user's that generated code could trip over: types, traits, macros, parameters.

use ::durable::{at_most_once, idempotent, naturally_idempotent};

use crate::Tx;

/// Not the crate.
mod sqlx {}
/// Not the crate.
mod serde {}

/// Defines types with the names of the prelude and of the runtime.
macro_rules! types {
    ($($name:ident)*) => {
        $(
            /// Not the one that everybody means.
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
        )*
    };
}

types! { Ok Err Some None Option Box Vec String Future Key Engine Handler HandlerMeta Outcome Failure Retention Window }

/// Whose methods every type has.
pub trait Everywhere {
    /// Not the prelude's.
    fn map(&self) {}
    /// Not the prelude's.
    fn into(&self) {}
    /// Not the runtime's.
    fn is_repeatable(&self) {}
    /// Not the runtime's.
    fn tx(&self) {}
}

impl<T: ?::core::marker::Sized> Everywhere for T {}

/// A parameter of the handler's name, and a message by a name of the engine's.
#[idempotent(key(engine), fingerprint(state), retention = "7d", crate = ::durable)]
pub async fn state(tx: &mut Tx<'_>, engine: &str, state: &str) -> crate::Result<()> {
    let _done = ::sqlx::query("SELECT ?").bind(engine).bind(state).execute(&mut **tx).await?;
    crate::Result::Ok(())
}

/// A transaction by a name of the engine's.
#[naturally_idempotent(reason = "sets the price to the message's value", crate = ::durable)]
pub async fn engine(engine: &mut Tx<'_>, state: (u8, u8)) -> crate::Result<u8> {
    let _done = ::sqlx::query("SELECT ?").bind(state.0).execute(&mut **engine).await?;
    crate::Result::Ok(state.1)
}

/// A message by the handler's name.
#[at_most_once(reason = "the next ping tells as much", loss = "a single ping", crate = ::durable)]
pub async fn message(message: &str) -> crate::Result<usize> {
    ::core::future::ready(crate::Result::Ok(message.len())).await
}
