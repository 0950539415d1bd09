/// Credits the order.
pub async fn credit(pool: &Pool<Sqlite>, msg: &Paid) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let claimed = sqlx::query("INSERT INTO idem_key (handler, event_key) VALUES (?, ?) ON CONFLICT DO NOTHING")
        .bind("credit")
        .bind(format!("{}/{}", msg.order_id, msg.kind))
        .execute(&mut *tx)
        .await?;
    if claimed.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(false);
    }
    sqlx::query("INSERT INTO effect (order_id, kind, cents) VALUES (?, ?, ?)")
        .bind(&msg.order_id)
        .bind(&msg.kind)
        .bind(msg.cents)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(true)
}

/// What a consumer that keeps its handlers in a table takes.
pub mod credit {
    use super::{Paid, Pool, Sqlite};

    pub fn call<'a>(
        pool: &'a Pool<Sqlite>,
        msg: &'a Paid,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<bool, sqlx::Error>> + Send + 'a>> {
        Box::pin(super::credit(pool, msg))
    }
}
