//! A string names what stands where the attribute stands: in a macro, from a macro, and through two of them.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: String,
    kind: u8,
}

/// The whole text is the caller's.
macro_rules! given {
    ($name:ident, $key:literal) => {
        #[idempotent(key = $key, retention = "7d")]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

/// The whole text is the macro's, and so is the parameter's name.
macro_rules! fixed {
    ($name:ident) => {
        #[idempotent(key = "msg.id, msg.kind", fingerprint = "msg.kind", retention = "7d")]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

macro_rules! twice {
    ($name:ident, $key:literal) => { given!($name, $key); };
}

macro_rules! method {
    ($key:literal) => {
        #[idempotent(key = $key, retention = "7d", name = "ledger.write")]
        async fn write(&self, _tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

struct Ledger;

impl Ledger {
    method!("msg.id, msg.kind");

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
    async fn ping(&self, _msg: &Paid) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

given!(from_the_caller, "msg.id, msg.kind");
fixed!(fixed_by_the_macro);
twice!(through_two, "msg.id, msg.kind");

fn main() {
    let msg = Paid { id: "1".into(), kind: 2 };
    let key = from_the_caller::key(&msg);
    assert_eq!(through_two::key(&msg), key);
    assert_eq!(key.unwrap().as_str(), "1/s:1/i:2");
    assert_eq!(fixed_by_the_macro::META.key, from_the_caller::META.key);
}
