//! One constant for several handlers: by name, by path, made in place, and chosen in a constant function.

#![deny(warnings)]

use idem_runtime::{Policy, idempotent};
use sqlx::{Sqlite, Transaction};

const PAYMENTS: Policy = Policy::retention("7d").redelivery([("broker", "1d"), ("dead_letter", "3d")]);

mod broker {
    pub(crate) const UNDECLARED: idem_runtime::Policy = idem_runtime::Policy::retention("36h");
}

const fn chosen(long: bool) -> Policy {
    if long { PAYMENTS } else { broker::UNDECLARED }
}

#[idempotent(key(id), policy = PAYMENTS)]
async fn by_name(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), policy = broker::UNDECLARED)]
async fn by_path(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), policy = Policy::retention("1d").redelivery([("broker", "23h59m59s")]))]
async fn in_place(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), policy = chosen(true))]
async fn by_function(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    assert_eq!((by_name::META.policy, by_name::META.redelivery.len()), (Some("PAYMENTS"), 2));
    assert_eq!((by_path::META.policy, by_path::META.redelivery.len()), (Some("broker::UNDECLARED"), 0));
    assert_eq!(in_place::META.redelivery[0].length.as_secs(), 86_399);
    assert_eq!(by_function::META.retention, by_name::META.retention);
}
