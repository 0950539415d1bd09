#[naturally_idempotent(reason = "sets the price to the message's value")]
pub async fn price(tx: &mut Transaction<'_, Sqlite>, msg: &Priced) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE item SET cents = ? WHERE id = ?").bind(msg.cents).bind(&msg.item).execute(&mut **tx).await?;
    Ok(())
}
