//! Retention and windows as constants, mixed with text, and as constant expressions.

#![deny(warnings)]

use idem_runtime::{Retention, idempotent};
use sqlx::{Sqlite, Transaction};

const WEEK: Retention = Retention::days(7);

struct Broker;

impl Broker {
    const REDELIVERS: Retention = Retention::hours(24);
}

#[idempotent(key(id), retention = WEEK, redelivery(broker = Broker::REDELIVERS, replay = "2d"))]
async fn mixed(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), retention = "7d", redelivery(broker = Retention::days(3)))]
async fn expression(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), retention = Retention::days(7))]
async fn undeclared(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    assert_eq!(mixed::META.redelivery[0].length, Broker::REDELIVERS);
    assert_eq!(expression::META.retention, undeclared::META.retention);
}
