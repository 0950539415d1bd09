#[idempotent(key(msg.order_id()), retention = "36h")]
async fn credit<DB, M>(tx: &mut Transaction<'_, DB>, msg: &M, accounts: &Accounts) -> Result<(), sqlx::Error>
where
    DB: Store,
    M: Order + Sync,
{
    accounts.credit(tx, msg).await
}
