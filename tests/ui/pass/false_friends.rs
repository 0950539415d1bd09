//! Names that look like those of attempts, hashes, clocks and positions, and are the event's own.

#![deny(warnings)]

use std::collections::BTreeMap;

use idem_runtime::{by_display, idempotent};
use sqlx::{Sqlite, Transaction};

/// Makes the same of the same.
struct Uuid;

impl Uuid {
    const NAMESPACE_OID: u8 = 1;

    fn new_v5(_namespace: &u8, name: &[u8]) -> String {
        format!("{name:?}")
    }
}

struct Inner {
    order_id: u64,
}

impl Inner {
    fn order_id(&self) -> u64 {
        self.order_id
    }
}

struct Paid {
    retry: Inner,
    payload: Inner,
    event: Inner,
    delivery: Inner,
    hash: Inner,
    tx_hash: String,
    message_id: String,
    event_id: String,
    body_id: u8,
    attempted_by: u8,
    retry_policy_id: u8,
    offset_account: u8,
    partition_key: String,
    generated_id: u8,
    now_playing: u8,
    random_seat: u8,
    headers: BTreeMap<String, String>,
    correlation_id: String,
    delivery_note_number: u32,
}

fn order_id_of(payload: &Inner) -> u64 {
    payload.order_id
}

macro_rules! in_text {
    ($($name:ident: $key:literal;)*) => {
        $(
            #[idempotent(key = $key, retention = "7d")]
            async fn $name(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
                Ok(())
            }
        )*
    };
}

in_text! {
    on_the_way: "msg.retry.order_id, msg.payload.order_id, msg.event.order_id, msg.delivery.order_id";
    methods_on_the_way: "msg.hash.order_id(), msg.delivery.order_id(), msg.payload.order_id()";
    passed: "order_id_of(&msg.payload), order_id_of(&msg.event), u64::from(msg.body_id)";
    parts_of_words: "msg.tx_hash, msg.message_id, msg.event_id, msg.body_id, msg.attempted_by, msg.retry_policy_id";
    more_parts_of_words: "msg.offset_account, msg.partition_key, msg.generated_id, msg.now_playing, msg.random_seat";
    of_the_same: "Uuid::new_v5(&Uuid::NAMESPACE_OID, msg.message_id.as_bytes())";
    header: r#"msg.headers["order-id"], msg.headers["x-request-key"]"#;
    named_by_the_producer: "msg.correlation_id, msg.delivery_note_number";
    in_another_form: "msg.message_id.clone(), msg.event_id.as_str(), by_display(&msg.body_id), msg.tx_hash.to_string()";
}

macro_rules! native {
    ($name:ident, $msg:ident, $($part:expr),*) => {
        #[idempotent(key($($part),*), retention = "7d")]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, $msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

native!(natively, msg, msg.retry.order_id, order_id_of(&msg.payload), msg.headers["order-id"]);
native!(native_of_the_same, msg, Uuid::new_v5(&Uuid::NAMESPACE_OID, msg.message_id.as_bytes()));

#[idempotent(key(payload_id, message_id), retention = "7d")]
async fn parameters(_tx: &mut Transaction<'_, Sqlite>, payload_id: &str, message_id: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(msg.order_id), occurred_at = at.occurred_at, retention = "7d")]
async fn times(_tx: &mut Transaction<'_, Sqlite>, msg: &Inner, at: &Times) -> Result<(), sqlx::Error> {
    Ok(())
}

struct Times {
    occurred_at: std::time::SystemTime,
}

fn main() {
    assert_eq!(parameters::key("1", "2").unwrap().as_str(), "1/s:1/s:2");
    assert_eq!(on_the_way::META.key.len(), 4);
    assert_eq!(native_of_the_same::META.key, of_the_same::META.key);
    let _ = (methods_on_the_way::META, passed::META, parts_of_words::META, more_parts_of_words::META, header::META);
    let _ = (named_by_the_producer::META, in_another_form::META, natively::META, times::META);
}
