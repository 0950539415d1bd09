//! The handlers of this program. That they are linked is what makes the commands know them.
#![allow(dead_code, reason = "this program asks about its handlers, and calls none")]

use idem_runtime::{Policy, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

/// Stripe retries for three days, and for thirty days somebody can resend an event by hand.
const STRIPE: Policy = Policy::retention("35d").redelivery([("retries", "3d"), ("resent_by_hand", "30d")]);

#[derive(Debug)]
struct Paid {
    id: String,
    account: String,
    cents: i64,
}

/// Credits the account that was paid, once. The same handler as the quickstart's, so that its database can be asked.
#[idempotent(key(event.id), policy = STRIPE, name = "credit-account")]
async fn credit_account(tx: &mut Transaction<'_, Sqlite>, event: &Paid) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE account SET cents = cents + ? WHERE id = ?")
        .bind(event.cents)
        .bind(&event.account)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

#[derive(Debug)]
struct Shipped {
    order: u64,
    parcel: u32,
}

/// Announces a parcel to its receiver. For how long the shop's own queue can redeliver, nobody has written down yet.
#[idempotent(
    key(event.order, event.parcel),
    retention = "14d",
    external(
        provider = "mail relay",
        guard = outbox,
        risk = "a mail that the relay has sent and not yet marked is sent again"
    ),
    name = "announce-parcel"
)]
async fn announce_parcel(tx: &mut Transaction<'_, Sqlite>, event: &Shipped) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO outbox (body) VALUES (?)")
        .bind(format!("parcel {} of order {}", event.parcel, event.order))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

#[derive(Debug)]
struct Moved {
    customer: u64,
    street: String,
}

/// Keeps the customer's newest address.
#[naturally_idempotent(reason = "the address is set to what the event says, however often", name = "set-address")]
async fn set_address(tx: &mut Transaction<'_, Sqlite>, event: &Moved) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE customer SET street = ? WHERE id = ?")
        .bind(&event.street)
        .bind(i64::try_from(event.customer).unwrap_or(i64::MAX))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

#[derive(Debug)]
struct Seen {
    page: String,
}

/// Counts a visit on the wall display.
#[at_most_once(
    reason = "the display is redrawn with the next visit",
    loss = "one visit on the display",
    name = "show-visit"
)]
async fn show_visit(event: &Seen) -> Result<(), std::fmt::Error> {
    if event.page.is_empty() { Err(std::fmt::Error) } else { Ok(()) }
}
