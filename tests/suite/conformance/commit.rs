//! Commit truth (class A).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idem_runtime::{ErrorKind, Failure, idempotent};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver, perform};
use sqlx::Transaction;

/// [B01]
pub(super) async fn a_swallowed_error_is_never_reported_as_applied<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let bad = Message::new("e1", [Step::Effect("e1"), Step::Ignored("SELECT * FROM no_such_table".into())]);
    if S::FAILED_STATEMENT_DOOMS {
        let error = perform(&engine, &bad).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::Aborted));
        assert!(error.to_string().contains("one of its statements had failed"), "{error}");
        assert_eq!((db.keys().await, db.effects("e1").await), (0, 0));
    } else {
        assert_eq!(deliver(&engine, &bad).await, Delivered::Applied);
        assert_eq!((db.keys().await, db.effects("e1").await), (1, 1));
        return;
    }
    let good = Message::new("e1", [Step::Effect("e1")]);
    assert_eq!(deliver(&engine, &good).await, Delivered::Applied);
    assert_eq!((db.keys().await, db.effects("e1").await), (1, 1));
}

/// [B03]
pub(super) async fn a_constraint_that_fails_at_the_commit_fails_the_delivery<S: TestStore>(db: Arc<Db<S>>) {
    if !S::DEFERS {
        return;
    }
    let engine = db.engine(1).await;
    let orphan = Message::new("e1", [Step::Sql("INSERT INTO child VALUES (7)".into()), Step::Effect("e1")]);
    assert_eq!(deliver(&engine, &orphan).await, Delivered::Refused(ErrorKind::Commit));
    assert_eq!((db.keys().await, db.effects("e1").await), (0, 0));

    assert_eq!(deliver(&engine, &Message::new("e2", [Step::Effect("e2")])).await, Delivered::Applied);
    db.run("INSERT INTO parent VALUES (7)").await;
    assert_eq!(deliver(&engine, &orphan).await, Delivered::Applied);
    assert_eq!(deliver(&engine, &orphan).await, Delivered::Duplicate);
    assert_eq!((db.keys().await, db.effects("e1").await, db.effects("e2").await), (2, 1, 1));
}

/// Leaves its body in every way there is. [B05]
#[idempotent(key(id), retention = "1d", name = "tests.exits")]
async fn exits<S: TestStore>(tx: &mut Transaction<'_, S>, id: &str) -> sqlx::Result<&'static str> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('exit')").await?;
    let doubled = (|| {
        if id.is_empty() {
            return 0;
        }
        id.len() * 2
    })();
    let nested: Result<usize, sqlx::Error> = async {
        if doubled == 0 {
            return Err(sqlx::Error::RowNotFound);
        }
        Ok(doubled)
    }
    .await;
    nested?;
    let chosen = 'found: {
        if id == "break" {
            break 'found "broke";
        }
        "fell through"
    };
    match id {
        "return ok" => return Ok("returned"),
        "return err" => return Err(sqlx::Error::RowNotFound),
        "question mark" => S::run(tx, "INSERT INTO no_such_table VALUES (1)").await?,
        _ => 0,
    };
    Ok(chosen)
}

pub(super) async fn every_early_exit_ends_as_its_value_says<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let mut applied = 0;
    for (msg, expected) in [
        ("return ok", Some("returned")),
        ("return err", None),
        ("question mark", None),
        ("break", Some("broke")),
        ("the end", Some("fell through")),
    ] {
        let outcome = exits(&engine, msg).await;
        applied += i64::from(expected.is_some());
        assert_eq!(outcome.ok().and_then(idem_runtime::Outcome::into_value), expected, "{msg}");
        assert_eq!((db.keys().await, db.effects("exit").await), (applied, applied), "{msg}");
    }
}

/// [B06]
pub(super) async fn a_failing_handler_leaves_no_key_until_it_succeeds<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(2).await;
    let failing = Message::new("e1", [Step::Effect("e1"), Step::Fail]);
    for _ in 0..3 {
        assert_eq!(deliver(&engine, &failing).await, Delivered::Failed);
        assert_eq!((db.keys().await, db.effects("e1").await), (0, 0));
    }
    let succeeding = Message::new("e1", [Step::Effect("e1")]);
    assert_eq!(deliver(&engine, &succeeding).await, Delivered::Applied);
    assert_eq!(deliver(&engine, &succeeding).await, Delivered::Duplicate);
    assert_eq!((db.keys().await, db.effects("e1").await, succeeding.runs()), (1, 1, 1));
}

/// [B08]
pub(super) async fn contention_runs_the_whole_transaction_again<S: TestStore>(db: Arc<Db<S>>) {
    let Some(contention) = S::CONTENTION else {
        return;
    };
    let engine = db.engine(1).await;
    let msg = Message {
        first_run: Some(vec![Step::Effect("run 1"), Step::Sql(contention.into())]),
        ..Message::new("e1", [Step::Effect("run 2")])
    };
    assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
    assert_eq!((db.effects("run 1").await, db.effects("run 2").await, db.keys().await), (0, 1, 1));
    assert_eq!(msg.runs(), 2);
    assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);
}

pub(super) async fn contention_is_given_up_after_the_last_run<S: TestStore>(db: Arc<Db<S>>) {
    let Some(contention) = S::CONTENTION else {
        return;
    };
    let engine = db.engine_with(1, |builder| builder.max_runs(3)).await;
    let msg = Message::new("e1", [Step::Effect("e1"), Step::Sql(contention.into())]);
    assert_eq!(deliver(&engine, &msg).await, Delivered::Failed);
    assert_eq!((msg.runs(), db.keys().await, db.effects("e1").await), (3, 0, 0));
}

/// What a handler that takes its message by value noted.
#[derive(Clone)]
struct Cloneable(Arc<AtomicUsize>, &'static str);

struct Moved(Arc<AtomicUsize>, &'static str);

#[idempotent(key(msg.1), retention = "1d", name = "tests.cloned")]
async fn cloned<S: TestStore>(tx: &mut Transaction<'_, S>, msg: Cloneable, sql: &str) -> sqlx::Result<()> {
    msg.0.fetch_add(1, Ordering::SeqCst);
    S::run(tx, sql).await.map(drop)
}

#[idempotent(key(msg.1), retention = "1d", name = "tests.moved")]
async fn moved<S: TestStore>(tx: &mut Transaction<'_, S>, msg: Moved, sql: &str) -> sqlx::Result<()> {
    msg.0.fetch_add(1, Ordering::SeqCst);
    S::run(tx, sql).await.map(drop)
}

pub(super) async fn a_moved_message_runs_again_only_if_it_can_be_cloned<S: TestStore>(db: Arc<Db<S>>) {
    let Some(contention) = S::CONTENTION else {
        return;
    };
    let engine = db.engine_with(1, |builder| builder.max_runs(3)).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let error = cloned(&engine, Cloneable(Arc::clone(&runs), "e1"), contention).await.unwrap_err();
    assert!(matches!(error, Failure::Handler(_)), "{error}");
    assert_eq!(runs.swap(0, Ordering::SeqCst), 3);
    let error = moved(&engine, Moved(Arc::clone(&runs), "e1"), contention).await.unwrap_err();
    assert!(matches!(error, Failure::Handler(_)), "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(db.keys().await, 0);
}
