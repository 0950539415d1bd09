#![allow(dead_code)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

struct Accounts;

impl Accounts {
    #[idempotent(key(msg.order_id), retention = "7d")]
    async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
        let _ = (tx, msg);
        Ok(())
    }
}

fn main() {}
