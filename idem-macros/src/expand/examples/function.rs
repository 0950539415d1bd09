/// Credits the order.
#[idempotent(key(msg.order_id, msg.kind), retention = "7d", redelivery(broker = "1d"))]
pub async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO effect (order_id, kind, cents) VALUES (?, ?, ?)")
        .bind(&msg.order_id)
        .bind(&msg.kind)
        .bind(msg.cents)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
