//! The figures at the end. What was applied is asked of the database, since memory is what a crash loses.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use sqlx::SqlitePool;

use crate::deliveries::Delivery;
use crate::stop::{Stop, stopped};

const DELIVERIES: &str = "SELECT count(*), coalesce(sum(attempts), 0) FROM broker_delivery WHERE acked";

const EVENTS: &str = "SELECT kind, events FROM event_count";

const ACCOUNTS: &str = "SELECT id, cents FROM account";

/// Serialized, it has the keys of `stripe-deliveries.expected.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    deliveries: i64,
    events: i64,
    events_by_type: BTreeMap<String, i64>,
    cents_if_applied_per_delivery: i64,
    cents_applied_once: i64,
    cents_by_account: BTreeMap<String, i64>,
    #[serde(skip)]
    cents_by_account_if_applied_per_delivery: BTreeMap<String, i64>,
    #[serde(skip)]
    attempts: i64,
}

impl Report {
    pub(crate) async fn read(pool: &SqlitePool, deliveries: &[Delivery]) -> Result<Self, Stop> {
        Self::query(pool, deliveries).await.map_err(stopped("the figures cannot be read from the database"))
    }

    async fn query(pool: &SqlitePool, deliveries: &[Delivery]) -> Result<Self, sqlx::Error> {
        let (acknowledged, attempts) = sqlx::query_as(DELIVERIES).fetch_one(pool).await?;
        let events: BTreeMap<_, _> = sqlx::query_as(EVENTS).fetch_all(pool).await?.into_iter().collect();
        let accounts: BTreeMap<_, _> = sqlx::query_as(ACCOUNTS).fetch_all(pool).await?.into_iter().collect();
        let mut without_key = BTreeMap::new();
        for payment in deliveries.iter().filter_map(|delivery| delivery.event.payment.as_ref()) {
            *without_key.entry(payment.account.clone()).or_default() += payment.cents;
        }
        Ok(Self {
            deliveries: acknowledged,
            events: events.values().sum(),
            events_by_type: events,
            cents_if_applied_per_delivery: deliveries.iter().map(Delivery::cents).sum(),
            cents_applied_once: accounts.values().sum(),
            cents_by_account: accounts,
            cents_by_account_if_applied_per_delivery: without_key,
            attempts,
        })
    }

    pub(crate) fn to_json(&self) -> Result<String, Stop> {
        serde_json::to_string_pretty(self).map_err(stopped("the figures cannot be written as JSON"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.events_by_type.iter().map(|(kind, events)| format!("{events} {kind}")).collect();
        writeln!(f, "deliveries  {:>5}", self.deliveries)?;
        writeln!(f, "applied     {:>5}   {}", self.events, kinds.join(", "))?;
        writeln!(f, "duplicates  {:>5}", self.deliveries - self.events)?;
        let again = self.attempts - self.deliveries;
        if again > 0 {
            writeln!(
                f,
                "redelivered {again:>5}   since a run ended before the acknowledgement; on top of the deliveries above"
            )?;
        }
        writeln!(f, "\n                     with the key            without a key")?;
        writeln!(f, "account       cents        amount      cents        amount      too much")?;
        for (account, &wrong) in &self.cents_by_account_if_applied_per_delivery {
            row(f, account, self.cents_by_account.get(account).copied().unwrap_or(0), wrong)?;
            writeln!(f)?;
        }
        row(f, "total", self.cents_applied_once, self.cents_if_applied_per_delivery)
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, right: i64, wrong: i64) -> fmt::Result {
    let [credited, without_key, too_much] = [right, wrong, wrong - right].map(amount);
    write!(f, "{name:<8} {right:>10} {credited:>13} {wrong:>10} {without_key:>13} {too_much:>13}")
}

/// Cents as a decimal amount.
fn amount(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.unsigned_abs() / 100, cents.unsigned_abs() % 100)
}
