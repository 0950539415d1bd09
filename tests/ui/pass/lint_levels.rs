//! Lint levels on a handler, strict and lenient, and `#[expect]` that is fulfilled by the body.

#![deny(warnings, unfulfilled_lint_expectations)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[forbid(unsafe_code)]
#[deny(unused_variables, unused_mut, unreachable_code)]
#[allow(clippy::unused_async, unused_parens)]
#[warn(missing_docs)]
#[idempotent(key(id), retention = "7d")]
async fn strict(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<usize, sqlx::Error> {
    Ok((id.len()))
}

#[expect(unused_variables, reason = "expected of the body alone")]
#[idempotent(key(id), retention = "7d")]
#[expect(unused_mut)]
async fn expected(_tx: &mut Transaction<'_, Sqlite>, id: &str, unused: u8) -> Result<(), sqlx::Error> {
    let mut changed = 1;
    println!("{changed}");
    Ok(())
}

#[expect(unreachable_code)]
#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(_tx: &mut Transaction<'_, Sqlite>, _id: &str) -> Result<(), sqlx::Error> {
    return Ok(());
    Ok(())
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
#[expect(unused_variables)]
async fn ping(id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[allow(non_snake_case)]
#[idempotent(key(orderId), retention = "7d")]
async fn notSnake(_tx: &mut Transaction<'_, Sqlite>, orderId: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

struct Ledger;

impl Ledger {
    #[expect(unused_variables)]
    #[idempotent(key(id), retention = "7d", name = "ledger.write")]
    async fn write(&self, tx: &mut Transaction<'_, Sqlite>, id: u8) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[expect(unused_variables)]
    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
    async fn ping(&self, id: u8) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

fn main() {
    let _ = (strict::META, expected::META, natural::META, ping::META, notSnake::META, Ledger);
}
