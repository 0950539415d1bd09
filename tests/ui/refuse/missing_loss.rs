#![allow(dead_code, unused_imports)]

use idem_runtime::at_most_once;
use sqlx::{Sqlite, Transaction};

struct Paid {
    order_id: String,
}

#[at_most_once(reason = "a late reading is worthless")]
async fn a(msg: &Paid) -> Result<(), sqlx::Error> {
    let _ = msg;
    Ok(())
}

fn main() {}
