//! The transaction as a handler's parameter.

use sqlx::Transaction;

use crate::store::Store;

/// A type that a handler may take its transaction as: `&mut Transaction<'_, DB>`, under whatever alias, or
/// `&mut PgConnection`, `&mut MySqlConnection`, `&mut SqliteConnection`.
#[diagnostic::on_unimplemented(
    message = "a handler's first parameter is its transaction, and `{Self}` is none",
    label = "not a transaction of a store",
    note = "write `tx: &mut sqlx::Transaction<'_, sqlx::Sqlite>` (or `Postgres`, `MySql`)",
    note = "the stores are features of idem-runtime: `sqlite` (on by default), `postgres`, `mysql`"
)]
pub trait TxParam {
    /// The database that the transaction belongs to.
    type Store: Store;
}

/// How a [`TxParam`] is made from the engine's transaction.
#[doc(hidden)] // Not public API: implemented here, called by generated code.
pub trait TxView<'c>: TxParam {
    fn view<'t>(tx: &'t mut Transaction<'c, Self::Store>) -> &'t mut Self;
}

impl<S: Store> TxParam for Transaction<'_, S> {
    type Store = S;
}

impl<'c, S: Store> TxView<'c> for Transaction<'c, S> {
    fn view<'t>(tx: &'t mut Transaction<'c, S>) -> &'t mut Self {
        tx
    }
}

/// Implements the traits for a connection type; called once by each store.
macro_rules! connection_param {
    ($store:ty, $connection:ty) => {
        impl crate::tx::TxParam for $connection {
            type Store = $store;
        }

        impl<'c> crate::tx::TxView<'c> for $connection {
            fn view<'t>(tx: &'t mut sqlx::Transaction<'c, $store>) -> &'t mut Self {
                tx
            }
        }
    };
}
pub(crate) use connection_param;
