//! Effects outside the database, with each guard, under each attribute.

#![deny(warnings)]

use idem_runtime::{Guard, Policy, Retention, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

const DAY: Retention = Retention::days(1);
const PAYMENTS: Policy = Policy::retention("7d").redelivery([("broker", "1d")]);

#[idempotent(
    key(id),
    retention = "7d",
    redelivery(broker = "1d"),
    external(provider = "stripe", guard = provider_key, window = "24h", risk = "a second charge"),
    external(provider = "adyen", guard = provider_key, window = DAY, risk = "a second charge"),
    external(
        provider = "paypal",
        guard = provider_key,
        window = "3h",
        lookup = "GET /charges?order=…",
        risk = "a second charge",
    ),
    external(provider = "crm", guard = lookup, lookup = "GET /contacts?order=…", risk = "a second contact"),
    external(provider = "mail", guard = outbox, risk = "a second mail"),
    external(risk = "a second line in the file", guard = none, provider = "disk")
)]
async fn all(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key(id),
    policy = PAYMENTS,
    external(provider = "stripe", guard = provider_key, window = DAY, risk = "a second charge")
)]
async fn under_a_policy(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[at_most_once(
    reason = "the next ping tells as much",
    loss = "a single ping",
    external(provider = "gateway", guard = none, risk = "none that anybody would notice")
)]
async fn once(_id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[naturally_idempotent(
    reason = "sets the price to the message's value",
    redelivery(broker = "30m"),
    external(provider = "shop", guard = provider_key, window = "1h", risk = "the price is sent again")
)]
async fn natural(_tx: &mut Transaction<'_, Sqlite>, _id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    assert_eq!(all::META.external.len(), 6);
    assert_eq!(under_a_policy::META.external[0].window, Some(DAY));
    assert_eq!(once::META.external[0].guard, Guard::None);
    assert_eq!(natural::META.external[0].guard, Guard::ProviderKey);
}
