//! Handlers whose attributes, visibility and body a `macro_rules!` is given: block, statements, methods.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: String,
}

macro_rules! handler {
    ($(#[$attr:meta])* $vis:vis fn $name:ident($tx:ident, $msg:ident) $body:block) => {
        $(#[$attr])*
        $vis async fn $name($tx: &mut Transaction<'_, Sqlite>, $msg: &Paid) -> Result<String, sqlx::Error> $body
    };
}

handler! {
    /// Is documented.
    #[idempotent(key(msg.id), retention = "7d")]
    #[deny(unused_variables)]
    pub(crate) fn keyed(tx, msg) {
        sqlx::query("SELECT 1").execute(&mut **tx).await?;
        if msg.id.is_empty() {
            return Ok(String::new());
        }
        Ok(msg.id.clone())
    }
}

handler! {
    #[naturally_idempotent(reason = "sets the price to the message's value")]
    fn natural(_tx, msg) {
        Ok(msg.id.clone())
    }
}

/// Defines the message's name itself.
macro_rules! statements {
    ($name:ident { $($statements:stmt;)* }) => {
        #[idempotent(key(msg.id), retention = "7d")]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            $($statements)*
            Ok(())
        }
    };
}

statements!(stated { let one = 1; let _ = one + 1; });

macro_rules! methods {
    ($ty:ident, $msg:ident, $key:expr, $($name:ident $pinned:literal)*) => {
        impl $ty {
            $(
                #[idempotent(key = $key, retention = "7d", name = $pinned)]
                async fn $name(&self, _tx: &mut Transaction<'_, Sqlite>, $msg: &Paid) -> Result<(), sqlx::Error> {
                    let _ = self;
                    Ok(())
                }
            )*

            #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
            async fn ping(&self, $msg: &Paid) -> Result<(), sqlx::Error> {
                let _ = $msg;
                Ok(())
            }
        }
    };
}

struct Ledger;

methods!(Ledger, paid, paid.id, first "ledger.first" second "ledger.second");

fn main() {
    let msg = Paid { id: "1".into() };
    assert_eq!(keyed::META.summary, "Is documented.");
    assert_eq!(keyed::key(&msg), stated::key(&msg));
    assert_eq!(idem_runtime::Registry::load().unwrap().handlers().len(), 6);
    let _ = natural::META;
}
