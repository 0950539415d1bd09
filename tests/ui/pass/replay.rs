//! The result is handed to duplicates: of any serde type, and of a generic handler's own.

#![deny(warnings)]

use idem_runtime::{Engine, idempotent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, Transaction};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
}

#[idempotent(key(id), retention = "7d", replay)]
async fn book(_tx: &mut Transaction<'_, Sqlite>, id: &u32) -> Result<Receipt, sqlx::Error> {
    Ok(Receipt { number: *id })
}

#[idempotent(replay, key(id), retention = "7d")]
async fn generic<T>(_tx: &mut Transaction<'_, Sqlite>, id: &u32, value: T) -> Result<T, sqlx::Error>
where
    T: Serialize + DeserializeOwned + Clone + Send,
{
    Ok(value)
}

async fn twice(engine: &Engine<Sqlite>) {
    for _ in 0..2 {
        let receipt: Option<Receipt> = book(engine, &7).await.unwrap().into_value();
        let text: Option<String> = generic(engine, &7, String::from("seven")).await.unwrap().into_value();
        assert_eq!((receipt, text.as_deref()), (Some(Receipt { number: 7 }), Some("seven")));
    }
}

fn main() {
    let _ = twice;
    assert!(book::META.replay && generic::META.replay);
}
