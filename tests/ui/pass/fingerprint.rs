//! What must be equal under an equal key: bytes, hashes, and whatever a key is made of.

#![deny(warnings)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: u64,
    cents: i64,
    body: Vec<u8>,
    digest: [u8; 4],
    content_hash: String,
}

impl Paid {
    fn checksum(&self) -> u32 {
        7
    }
}

#[idempotent(
    key(msg.id),
    fingerprint(msg.body, msg.digest, msg.content_hash, msg.checksum(), msg.cents, msg.body.as_slice()),
    retention = "7d"
)]
async fn native(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(msg.id), fingerprint = "msg.body, msg.cents", retention = "7d")]
async fn in_a_string(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), fingerprint(payload), retention = "7d")]
async fn whole_payload(_tx: &mut Transaction<'_, Sqlite>, id: &str, payload: &[u8]) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    assert_eq!(in_a_string::META.fingerprint, ["msg.body", "msg.cents"]);
    assert_ne!(whole_payload::key("1", b"a"), whole_payload::key("1", b"b"));
    let _ = native::META;
}
