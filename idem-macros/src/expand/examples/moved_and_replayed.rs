#[idempotent(
    key(order_id),
    retention = "7d",
    fingerprint(cents),
    occurred_at = at,
    replay,
    crate = billing::idem_runtime
)]
async fn credit(conn: &mut SqliteConnection, Paid { order_id, mut cents, at }: Paid) -> Result<Receipt, Error> {
    cents += FEE;
    receipt(conn, order_id, cents, at).await
}
