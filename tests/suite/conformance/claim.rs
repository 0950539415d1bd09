//! New or duplicate (class C).

use std::sync::Arc;

use idem_runtime::{ErrorKind, Handler, Outcome, idempotent};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver};
use sqlx::{Sqlite, Transaction};

/// [B12]
pub(super) async fn new_and_duplicate_are_told_apart_on_one_connection<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    for (id, expected) in [
        ("k1", Delivered::Applied),
        ("k1", Delivered::Duplicate),
        ("k2", Delivered::Applied),
        ("k1", Delivered::Duplicate),
    ] {
        assert_eq!(deliver(&engine, &Message::new(id, [Step::Effect("e")])).await, expected);
    }
    assert_eq!((db.effects("e").await, db.keys().await), (2, 2));
}

/// [B12] The insert fails for a reason of its own.
pub(super) async fn a_refused_insert_is_a_failure_and_never_a_duplicate<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let refuse = match S::NAME {
        "SQLite" => {
            "CREATE TRIGGER refuse BEFORE INSERT ON idem_key BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        }
        _ => "ALTER TABLE idem_key ADD CONSTRAINT refuse CHECK (claim IS NULL)",
    };
    db.run(refuse).await;
    let msg = Message::new("k1", [Step::Effect("e")]);
    assert_eq!(deliver(&engine, &msg).await, Delivered::Refused(ErrorKind::Database));
    assert_eq!((db.effects("e").await, db.keys().await, msg.runs()), (0, 0, 0));
}

/// [B12] A violation of a unique index is no duplicate unless it is the key's.
pub(super) async fn a_foreign_unique_index_is_a_failure_and_never_a_duplicate<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    db.run("CREATE UNIQUE INDEX one_per_handler ON idem_key (handler)").await;
    assert_eq!(deliver(&engine, &Message::new("k1", [Step::Effect("e")])).await, Delivered::Applied);
    let other = Message::new("k2", [Step::Effect("e")]);
    assert_eq!(deliver(&engine, &other).await, Delivered::Refused(ErrorKind::Database));
    assert_eq!((db.effects("e").await, other.runs()), (1, 0));
    db.run(if S::NAME == "MySQL" { "DROP INDEX one_per_handler ON idem_key" } else { "DROP INDEX one_per_handler" })
        .await;
    assert_eq!(deliver(&engine, &other).await, Delivered::Applied);
}

#[idempotent(key(order), retention = "1d", name = "tests.bill")]
async fn bill<S: TestStore>(tx: &mut Transaction<'_, S>, order: &str) -> sqlx::Result<()> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('billed')").await.map(drop)
}

#[idempotent(key(order), retention = "1d", name = "tests.mail")]
async fn mail<S: TestStore>(tx: &mut Transaction<'_, S>, order: &str) -> sqlx::Result<()> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('mailed')").await.map(drop)
}

/// [B16]
pub(super) async fn two_handlers_apply_the_same_key_once_each<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(2).await;
    for again in [false, true] {
        assert_eq!(bill(&engine, "order 1").await.unwrap().is_duplicate(), again);
        assert_eq!(mail(&engine, "order 1").await.unwrap().is_duplicate(), again);
    }
    assert_eq!((db.effects("billed").await, db.effects("mailed").await), (1, 1));
}

/// Counts what it is given, with a state that it is given too.
#[idempotent(key(order), retention = "1d", name = "tests.tally")]
async fn tally(_tx: &mut Transaction<'_, Sqlite>, order: &str, price: &i64) -> sqlx::Result<i64> {
    let length = i64::try_from(order.len()).unwrap_or_default();
    Ok(length * price)
}

/// A consumer that knows nothing of the handler but its type.
async fn consume<H, S, T>(engine: &idem_runtime::Engine<S>, message: &H::Message, state: &H::State) -> Option<T>
where
    S: idem_runtime::Store,
    H: Handler<S, Returned = sqlx::Result<T>>,
{
    assert_eq!(H::META.message, "str");
    assert_eq!(engine.registry().get(H::META.name), Some(H::META));
    match engine.handle::<H>(message, state).await {
        Ok(Outcome::Applied(value)) => Some(value),
        _ => None,
    }
}

pub(super) async fn a_handler_type_is_what_consumers_run<S: TestStore>(_: Arc<Db<S>>) {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let order = String::from("order 1");
        // Behind a pointer, as a router keeps it: the future must be `Send`.
        let task = tokio::spawn({
            let (engine, order) = (engine.clone(), order.clone());
            async move { consume::<tally, Sqlite, _>(&engine, &order, &3).await }
        });
        assert_eq!(task.await.unwrap(), Some(21));
        assert_eq!(consume::<tally, Sqlite, _>(&engine, &order, &3).await, None);
        assert_eq!(<tally as Handler<Sqlite>>::key(&order, &3).unwrap(), tally::key(&order, &3).ok());
    })
    .await;
}
