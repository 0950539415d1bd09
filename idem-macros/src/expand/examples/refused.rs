#[idempotent(key(msg.delivery_tag), retention = "7")]
async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    store(tx, msg).await
}
