//! Work that escapes the transaction (class B).

use std::sync::Arc;

use idem_runtime::{Engine, ErrorKind, idempotent};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver, perform};
use sqlx::Transaction;

/// Delivers a message whose handler ends its transaction, and makes sure that the engine says so, that it can go on with
/// its only connection, and that the text says whether the key is stored.
async fn is_found_out<S: TestStore>(db: &Db<S>, steps: Vec<Step>, key_is_stored: bool) {
    let engine = db.engine(1).await;
    let msg = Message::new("escapes", steps);
    let error = perform(&engine, &msg).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Escaped), "{error}");
    let said = if key_is_stored { "its key is stored" } else { "its key is not stored" };
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(db.keys().await, i64::from(key_is_stored));
    for id in ["after 1", "after 2"] {
        assert_eq!(deliver(&engine, &Message::new(id, [Step::Effect("after")])).await, Delivered::Applied);
    }
    assert_eq!(db.effects("after").await, 2);
}

fn sql(sql: &str) -> Step {
    Step::Sql(sql.into())
}

/// [B10]
pub(super) async fn a_rollback_by_the_handler_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    is_found_out(&db, vec![Step::Effect("1"), sql("ROLLBACK"), Step::Effect("2")], false).await;
}

/// [B10]
pub(super) async fn a_commit_by_the_handler_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    is_found_out(&db, vec![Step::Effect("1"), sql("COMMIT"), Step::Effect("2")], true).await;
}

/// [B10] The transaction that is open at the end is not the one that the key was claimed in.
pub(super) async fn a_commit_and_a_new_transaction_are_found_out<S: TestStore>(db: Arc<Db<S>>) {
    is_found_out(&db, vec![Step::Effect("1"), sql("COMMIT"), sql(S::BEGIN), Step::Effect("2")], true).await;
    assert_eq!((db.effects("1").await, db.effects("2").await), (1, 0));
}

/// A key that stays behind would turn the redelivery of a failed event into a duplicate.
pub(super) async fn a_commit_before_an_error_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    is_found_out(&db, vec![Step::Effect("1"), sql("COMMIT"), Step::Fail], true).await;
}

pub(super) async fn a_commit_before_a_panic_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    is_found_out(&db, vec![Step::Effect("1"), sql("COMMIT"), Step::Panic], true).await;
}

/// Puts another transaction in the place of ours, and commits ours.
#[idempotent(key(id), retention = "1d", name = "tests.exchanges")]
async fn exchanges<S: TestStore>(tx: &mut Transaction<'_, S>, id: &str, another: &Engine<S>) -> sqlx::Result<()> {
    let mine = std::mem::replace(tx, another.pool().begin().await?);
    mine.commit().await
}

pub(super) async fn a_transaction_that_was_exchanged_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(2).await;
    let error = exchanges(&engine, "e1", &engine).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Escaped), "{error}");
    assert!(error.to_string().contains("its key is stored"), "{error}");
    assert_eq!(deliver(&engine, &Message::new("e2", [Step::Effect("e2")])).await, Delivered::Applied);
}
