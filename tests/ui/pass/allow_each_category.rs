//! Every refusal that can be overridden, overridden.

#![deny(warnings)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Exam {
    id: u64,
    attempt: u8,
    partition: u8,
    digest: String,
    seat: Option<u8>,
}

#[idempotent(
    key(msg.id, msg.attempt),
    allow(attempt_scoped, reason = "the exam's own attempt, set by the producer"),
    retention = "7d"
)]
async fn attempt_scoped(_tx: &mut Transaction<'_, Sqlite>, msg: &Exam) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(msg.digest), allow(content_hash, reason = "names the artefact itself"), retention = "7d")]
async fn content_hash(_tx: &mut Transaction<'_, Sqlite>, msg: &Exam) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key(msg.id, msg.partition),
    allow(broker_position, reason = "a partition of the building",),
    retention = "7d"
)]
async fn broker_position(_tx: &mut Transaction<'_, Sqlite>, msg: &Exam) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(msg), allow(whole_message, reason = "the message is the identifier"), retention = "7d")]
async fn whole_message(_tx: &mut Transaction<'_, Sqlite>, msg: &str) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key(msg.id, msg.seat.unwrap_or(0)),
    allow(defaulted, reason = "an exam without seats has the one"),
    retention = "7d"
)]
async fn defaulted(_tx: &mut Transaction<'_, Sqlite>, msg: &Exam) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key(m.0, m.1, m.2, m.3, m.4, m.5, m.6),
    allow(too_many_parts, reason = "a natural key of the old system"),
    retention = "7d"
)]
async fn too_many_parts(_tx: &mut Transaction<'_, Sqlite>, m: &(u8, u8, u8, u8, u8, u8, u8)) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(
    key(msg.id, msg.attempt, msg.seat.unwrap()),
    allow(attempt_scoped, reason = "the exam's own attempt, set by the producer"),
    allow(defaulted, reason = "decoding refuses an exam without a seat"),
    retention = "7d"
)]
async fn two(_tx: &mut Transaction<'_, Sqlite>, msg: &Exam) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    let all = [attempt_scoped::META, content_hash::META, broker_position::META];
    for meta in all.into_iter().chain([whole_message::META, defaulted::META, too_many_parts::META]) {
        assert_eq!(meta.allowed[0].category, meta.name);
    }
    assert_eq!(two::META.allowed.len(), 2);
    assert_eq!(too_many_parts::key(&(1, 2, 3, 4, 5, 6, 7)).unwrap().as_str(), "1/i:1/i:2/i:3/i:4/i:5/i:6/i:7");
}
