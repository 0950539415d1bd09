/// Credits the order.
#[idempotent(key(msg.order_id), retention = "7d", batch = credit_all)]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid, ledger: &Ledger) -> Result<(), sqlx::Error> {
    credit_all(tx, &[msg], ledger).await
}
