impl Accounts {
    /// Credits the account of the order.
    #[idempotent(key = "msg.order_id", retention = WINDOW, redelivery(broker = BROKER), name = "accounts.credit")]
    pub(crate) async fn credit(self: Arc<Self>, tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> anyhow::Result<i64> {
        Ok(self.add(tx, msg.cents).await?)
    }
}
