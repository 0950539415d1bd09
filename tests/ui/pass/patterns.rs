//! Patterns in the message's place: of structs, tuples, references, with bindings and nested.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[derive(Clone)]
struct Paid {
    id: u64,
    cents: i64,
    kind: Kind,
}

#[derive(Clone, Copy)]
struct Kind(u8);

#[idempotent(key(id, kind), retention = "7d")]
async fn borrowed(
    _tx: &mut Transaction<'_, Sqlite>,
    Paid { id, cents, kind: Kind(kind) }: &Paid,
) -> Result<i64, sqlx::Error> {
    Ok(*cents)
}

#[idempotent(key(id), fingerprint(cents), retention = "7d")]
async fn moved(_tx: &mut Transaction<'_, Sqlite>, Paid { id, mut cents, .. }: Paid) -> Result<i64, sqlx::Error> {
    cents += 1;
    Ok(cents)
}

#[idempotent(key(id, number), retention = "7d")]
async fn tuple(_tx: &mut Transaction<'_, Sqlite>, (id, number): (String, u8)) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id, whole.1), retention = "7d")]
async fn bound(_tx: &mut Transaction<'_, Sqlite>, whole @ &(ref id, _): &(String, u8)) -> Result<(), sqlx::Error> {
    let _ = whole;
    Ok(())
}

#[idempotent(key(first, last), retention = "7d")]
async fn array(_tx: &mut Transaction<'_, Sqlite>, [first, .., last]: [u8; 4]) -> Result<(), sqlx::Error> {
    Ok(())
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(
    _tx: &mut Transaction<'_, Sqlite>,
    Paid { mut cents, .. }: Paid,
    (a, _): (u8, u8),
) -> Result<i64, sqlx::Error> {
    cents += i64::from(a);
    Ok(cents)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(Paid { id, .. }: &Paid, _: &str) -> Result<u64, std::fmt::Error> {
    Ok(*id)
}

fn main() {
    let msg = Paid { id: 1, cents: 2, kind: Kind(3) };
    assert_eq!(borrowed::key(&msg).unwrap().as_str(), "1/i:1/i:3");
    assert_eq!(moved::key(&msg).unwrap().as_str(), "1/i:1");
    assert_eq!(tuple::key(&("t".into(), 1)), bound::key(&("t".into(), 1)));
    assert_eq!(array::key(&[1, 2, 3, 4]).unwrap().as_str(), "1/i:1/i:4");
    let _ = (natural::META, ping::META);
}
