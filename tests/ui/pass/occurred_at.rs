//! The event's own time: a field, a call, in a string, and an instant of another library's.

#![deny(warnings)]

use std::time::{Duration, SystemTime};

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[derive(Clone, Copy)]
struct Stamp(u64);

impl From<Stamp> for SystemTime {
    fn from(Stamp(secs): Stamp) -> Self {
        Self::UNIX_EPOCH + Duration::from_secs(secs)
    }
}

struct Paid {
    id: u64,
    created_at: SystemTime,
    stamp: Stamp,
}

impl Paid {
    fn at(&self) -> Stamp {
        self.stamp
    }
}

#[idempotent(key(msg.id), occurred_at = msg.created_at, retention = "7d")]
async fn field(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(msg.id), occurred_at = "msg.stamp", retention = "7d")]
async fn in_a_string(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(msg.id), occurred_at = msg.at(), retention = "7d")]
async fn method(_tx: &mut Transaction<'_, Sqlite>, msg: Paid) -> Result<(), sqlx::Error> {
    Ok(())
}

#[idempotent(key(id), occurred_at = SystemTime::from(*stamp), retention = "7d")]
async fn pattern(_tx: &mut Transaction<'_, Sqlite>, (id, stamp): (u64, Stamp)) -> Result<(), sqlx::Error> {
    Ok(())
}

fn main() {
    let msg = Paid { id: 1, created_at: SystemTime::UNIX_EPOCH, stamp: Stamp(0) };
    assert_eq!(field::key(&msg), in_a_string::key(&msg));
    assert_eq!(method::key(&msg), pattern::key(&(1, Stamp(0))));
    assert_eq!(method::META.occurred_at, Some("msg.at()"));
}
