//! The figures at the end, asked of the database: memory is what a crash loses.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use sqlx::SqlitePool;

use super::{Stop, stopped};

/// Serialized, it has the keys of `stripe-deliveries.expected.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    deliveries: i64,
    events: i64,
    events_by_type: BTreeMap<String, i64>,
    cents_if_applied_per_delivery: i64,
    cents_applied_once: i64,
    cents_by_account: BTreeMap<String, i64>,
}

impl Report {
    /// Of so many deliveries, which would be so many cents if each counted.
    pub(crate) async fn read(pool: &SqlitePool, deliveries: i64, cents: i64) -> Result<Self, Stop> {
        Self::query(pool, deliveries, cents).await.map_err(stopped("the figures cannot be read from the database"))
    }

    async fn query(pool: &SqlitePool, deliveries: i64, cents: i64) -> Result<Self, sqlx::Error> {
        let events = sqlx::query_as("SELECT kind, events FROM event_count").fetch_all(pool).await?;
        let accounts = sqlx::query_as("SELECT id, cents FROM account").fetch_all(pool).await?;
        let events: BTreeMap<String, i64> = events.into_iter().collect();
        let cents_by_account: BTreeMap<String, i64> = accounts.into_iter().collect();
        Ok(Self {
            deliveries,
            events: events.values().sum(),
            events_by_type: events,
            cents_if_applied_per_delivery: cents,
            cents_applied_once: cents_by_account.values().sum(),
            cents_by_account,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "deliveries  {:>8}", self.deliveries)?;
        writeln!(f, "applied     {:>8}", self.events)?;
        writeln!(f, "duplicates  {:>8}", self.deliveries - self.events)?;
        writeln!(f, "cents       {:>8}", self.cents_applied_once)?;
        write!(f, "without a key it would be {} cents", self.cents_if_applied_per_delivery)
    }
}
