#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

struct Accounts;

impl Accounts {
    const CENTS: i64 = 5;

    #[idempotent(key(msg.order_id), retention = "7d")]
    async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE account SET cents = cents + ?").bind(Self::CENTS).execute(&mut **tx).await?;
        let _ = msg;
        Ok(())
    }
}

fn main() {}
