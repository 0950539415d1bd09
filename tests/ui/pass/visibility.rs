//! Public, restricted and private handlers of types that are as visible, and imported by one `use`.

#![deny(warnings, unreachable_pub, unnameable_types, private_interfaces, private_bounds, missing_docs)]

/// Handlers.
pub mod outer {
    use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
    use sqlx::{Sqlite, Transaction};

    /// A message.
    #[derive(Debug)]
    pub struct Paid {
        id: u64,
    }

    #[allow(dead_code)]
    struct Private {
        id: u64,
    }

    /// Is for everybody.
    #[idempotent(key(msg.id), retention = "7d")]
    pub async fn public(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[idempotent(key(msg.id), retention = "7d")]
    pub(crate) async fn of_the_crate(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[naturally_idempotent(reason = "sets the price to the message's value")]
    pub(in crate::outer) async fn of_the_module(
        _tx: &mut Transaction<'_, Sqlite>,
        msg: &Private,
    ) -> Result<u64, sqlx::Error> {
        Ok(msg.id)
    }

    /// Pings.
    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
    pub async fn ping(msg: &Paid) -> Result<u64, sqlx::Error> {
        Ok(msg.id)
    }

    /// Has methods.
    #[derive(Debug)]
    pub struct Ledger;

    impl Ledger {
        /// Writes.
        #[idempotent(key(msg.id), retention = "7d", name = "ledger.write")]
        pub async fn write(&self, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }

        #[idempotent(key(msg.id), retention = "7d", name = "ledger.write_privately")]
        async fn write_privately(&self, _tx: &mut Transaction<'_, Sqlite>, msg: &Private) -> Result<(), sqlx::Error> {
            Ok(())
        }
    }

    /// Re-exports.
    pub mod prelude {
        pub use super::{ping, public};
    }
}

use outer::of_the_crate;
use outer::prelude::{ping as renamed, public};

fn main() {
    async fn calls(engine: idem_runtime::Engine<sqlx::Sqlite>, msg: outer::Paid) {
        let _ = (public(&engine, &msg).await, renamed(&engine, &msg).await, of_the_crate(&engine, &msg).await);
        let _ = (engine.handle::<public>(&msg, &()).await, engine.handle::<renamed>(&msg, &()).await);
    }
    let _ = calls;
    assert_eq!([public::META.name, renamed::META.name], ["public", "ping"]);
}
