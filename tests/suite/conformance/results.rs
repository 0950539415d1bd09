//! The stored result, the fingerprint, the event's own time.

#![allow(clippy::disallowed_methods, reason = "the judge has a clock of its own")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use idem_runtime::{ErrorKind, Outcome, Settle, idempotent};
use idem_tests::{Db, TestStore};
use serde::{Deserialize, Serialize};
use sqlx::Transaction;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u64,
    text: String,
}

#[idempotent(key(order), retention = "1d", name = "tests.receipt", replay)]
async fn receipt<S: TestStore>(tx: &mut Transaction<'_, S>, order: &str, number: &u64) -> anyhow::Result<Receipt> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('receipt')").await?;
    Ok(Receipt { number: *number, text: "obrigado, João \0".into() })
}

pub(super) async fn a_duplicate_gets_the_stored_result<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let first = receipt(&engine, "order 1", &7).await.unwrap();
    assert!(first.is_applied());
    let second = receipt(&engine, "order 1", &8).await.unwrap();
    let Outcome::Duplicate(seen) = &second else { panic!("{second:?}") };
    assert!(seen.age < Duration::from_secs(60), "{seen:?}");
    let apart = SystemTime::now().duration_since(seen.claimed_at).unwrap_or_default();
    assert!(apart < Duration::from_secs(60), "the judge's clock and the database's are {apart:?} apart");
    assert_eq!(first.into_value(), second.into_value());
    assert_eq!(db.effects("receipt").await, 1);
}

pub(super) async fn a_result_that_does_not_read_is_an_error_and_no_second_run<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    receipt(&engine, "order 1", &7).await.unwrap();
    let broken =
        if S::NAME == "SQLite" { "CAST('{\"number\":\"seven\"}' AS BLOB)" } else { "'{\"number\":\"seven\"}'" };
    db.run(&format!("UPDATE idem_key SET result = {broken}")).await;
    let error = receipt(&engine, "order 1", &7).await.unwrap_err();
    assert_eq!((error.kind(), error.settle()), (Some(ErrorKind::Replay), Settle::DeadLetter));
    assert!(error.to_string().contains("the event was applied"), "{error}");
    assert_eq!(db.effects("receipt").await, 1);
}

pub(super) async fn a_key_from_before_replay_has_no_result<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    receipt(&engine, "order 1", &7).await.unwrap();
    db.run("UPDATE idem_key SET result = NULL").await;
    assert_eq!(receipt(&engine, "order 1", &7).await.unwrap().into_value(), None);
}

#[idempotent(key(order), retention = "1d", name = "tests.pay", fingerprint(cents, body))]
async fn pay<S: TestStore>(tx: &mut Transaction<'_, S>, order: &str, cents: i64, body: &[u8]) -> sqlx::Result<()> {
    S::run(tx, &format!("INSERT INTO effect (note) VALUES ('pay {cents}')")).await.map(drop)
}

pub(super) async fn another_fingerprint_is_a_mismatch<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    assert!(pay(&engine, "order 1", 500, b"{}").await.unwrap().is_applied());
    assert!(pay(&engine, "order 1", 500, b"{}").await.unwrap().is_duplicate());
    for (cents, body) in [(501, &b"{}"[..]), (500, b"{ }")] {
        let error = pay(&engine, "order 1", cents, body).await.unwrap_err();
        assert_eq!((error.kind(), error.settle()), (Some(ErrorKind::Mismatch), Settle::DeadLetter));
    }
    assert!(pay(&engine, "order 2", 501, b"{}").await.unwrap().is_applied());
    assert_eq!((db.effects("pay 500").await, db.effects("pay 501").await, db.keys().await), (1, 1, 2));
}

pub(super) async fn a_key_from_before_the_fingerprint_is_a_duplicate<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    pay(&engine, "order 1", 500, b"{}").await.unwrap();
    db.run("UPDATE idem_key SET fingerprint = NULL").await;
    assert!(pay(&engine, "order 1", 501, b"{}").await.unwrap().is_duplicate());
}

#[idempotent(key(order), retention = "2h", name = "tests.ship", occurred_at = *at)]
pub(super) async fn ship<S: TestStore>(tx: &mut Transaction<'_, S>, order: &str, at: &SystemTime) -> sqlx::Result<()> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('shipped')").await.map(drop)
}

const MINUTE: Duration = Duration::from_secs(60);

pub(super) async fn an_event_older_than_its_retention_is_parked<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let now = SystemTime::now();
    assert!(ship(&engine, "order 1", &(now - 119 * MINUTE)).await.unwrap().is_applied());
    let error = ship(&engine, "order 2", &(now - 121 * MINUTE)).await.unwrap_err();
    assert_eq!((error.kind(), error.settle()), (Some(ErrorKind::Expired), Settle::DeadLetter));
    assert!(error.to_string().contains("keys are kept for 2h"), "{error}");
    // An old event whose key is still there is known to be a duplicate.
    assert!(ship(&engine, "order 1", &(now - 121 * MINUTE)).await.unwrap().is_duplicate());
    assert_eq!((db.effects("shipped").await, db.keys().await), (1, 1));
}

pub(super) async fn an_event_from_the_future_is_parked<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let now = SystemTime::now();
    assert!(ship(&engine, "order 1", &(now + 4 * MINUTE)).await.unwrap().is_applied());
    let error = ship(&engine, "order 2", &(now + 6 * MINUTE)).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Expired));
    assert!(error.to_string().contains("ahead of the database's clock"), "{error}");
    assert_eq!((db.effects("shipped").await, db.keys().await), (1, 1));
}
