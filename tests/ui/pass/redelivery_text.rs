//! Windows as text, of any name, with a retention one second longer than their sum.

#![deny(warnings)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), retention = "6d1s", redelivery(broker = "1d", dead_letter = "3d", replay = "2d",))]
async fn just_longer(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(redelivery(r#type = "90m"), key(id), retention = "1d12h")]
async fn in_another_order(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    let sum: u64 = just_longer::META.redelivery.iter().map(|window| window.length.as_secs()).sum();
    assert_eq!(just_longer::META.retention.unwrap().as_secs(), sum + 1);
    assert_eq!(in_another_order::META.redelivery.len(), 1);
}
