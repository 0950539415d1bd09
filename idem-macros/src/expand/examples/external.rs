/// Charges the card.
#[idempotent(
    key(msg.order_id, msg.attempt),
    policy = PAYMENTS,
    external(provider = "stripe", guard = provider_key, window = "30d", risk = "a second charge after a month"),
    external(provider = "mail", guard = none, risk = "a second mail, which says the same"),
    allow(attempt_scoped, reason = "the customer's attempt to pay, numbered by the shop")
)]
async fn charge(tx: &mut Transaction<'_, Postgres>, msg: &Order, stripe: &Stripe) -> Result<(), Error> {
    stripe.charge(charge::key(msg, stripe)?.as_str(), msg.cents).await?;
    store(tx, msg).await
}
