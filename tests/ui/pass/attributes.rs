//! What speaks to callers: `must_use`, `deprecated`, documentation in every form.

#![deny(warnings, missing_docs, rustdoc::all)]

use idem_runtime::{Engine, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

/// Is documented.
///
/// # Errors
///
/// Those of the database.
#[must_use = "it says whether the event was new"]
#[idempotent(key(id), retention = "7d")]
pub async fn must_be_used(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

/** A block of
    documentation. */
#[idempotent(key(id), retention = "7d")]
#[deprecated(since = "1.0.0", note = "use `must_be_used`")]
#[doc(alias = "obsolete")]
#[inline]
pub async fn old(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[doc = "Made of "]
#[doc = concat!("a ", "macro.")]
#[naturally_idempotent(reason = "sets the price to the message's value")]
#[deprecated]
#[cold]
pub async fn natural(_tx: &mut Transaction<'_, Sqlite>, _id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[doc(hidden)]
#[deprecated = "use `must_be_used`"]
#[must_use]
#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
pub async fn ping(_id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

struct Ledger;

impl Ledger {
    #[deprecated]
    #[must_use]
    #[idempotent(key(id), retention = "7d", name = "ledger.old")]
    async fn old(&self, _tx: &mut Transaction<'_, Sqlite>, id: u8) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[deprecated]
    #[must_use]
    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
    async fn ping(&self, _id: u8) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

fn main() {
    #[expect(deprecated, reason = "callers are told")]
    async fn calls(engine: Engine<Sqlite>) {
        let _ = must_be_used(&engine, "1").await;
        let _ = old(&engine, "1").await;
        let _ = natural(&engine, "1").await;
        let _ = ping(&engine, "1").await;
        let _ = Ledger.old(&engine, 1).await;
        let _ = Ledger.ping(&engine, 1).await;
    }
    let _ = calls;
    assert_eq!(must_be_used::META.summary, "Is documented.");
}
