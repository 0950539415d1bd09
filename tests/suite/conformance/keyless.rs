//! Handlers without a key: naturally idempotent ones, and those that run at most once.

use std::sync::Arc;

use idem_runtime::{ErrorKind, Failure, Handled, Outcome, Settle, at_most_once, naturally_idempotent};
use idem_tests::{Db, Message, Step, TestStore, perform};
use sqlx::Transaction;

#[naturally_idempotent(reason = "the tests want it again", name = "tests.natural")]
pub(crate) async fn natural<S: TestStore>(tx: &mut Transaction<'_, S>, msg: &Message) -> anyhow::Result<usize> {
    perform::apply_in(tx, msg).await
}

/// How a ping goes.
pub(crate) enum Ping {
    Answered(u8),
    Failed,
    Panicked(&'static str),
    Hung,
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "tests.ping")]
pub(crate) async fn ping(goes: &Ping) -> Result<u8, std::fmt::Error> {
    match goes {
        Ping::Answered(answer) => Ok(*answer),
        Ping::Failed => Err(std::fmt::Error),
        Ping::Panicked(panic) => panic!("{panic}"),
        Ping::Hung => std::future::pending().await,
    }
}

fn kind(handled: Handled<anyhow::Result<usize>>) -> ErrorKind {
    let failure = handled.unwrap_err();
    assert_eq!(failure.settle(), Settle::Retry, "{failure}");
    failure.kind().unwrap()
}

pub(super) async fn a_delivery_without_a_key_is_applied_each_time<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let msg = Message::new("k1", [Step::Effect("e")]);
    for run in 1..=2 {
        assert_eq!(natural(&engine, &msg).await.unwrap(), Outcome::Applied(run));
    }
    assert_eq!((db.effects("e").await, db.keys().await), (2, 0));
}

pub(super) async fn what_goes_wrong_without_a_key_leaves_nothing_behind<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let failure = natural(&engine, &Message::new("k1", [Step::Effect("e"), Step::Fail])).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "handler `tests.natural`: the handler returned an error; its transaction was rolled back, nothing is stored, and a \
         redelivery runs it again"
    );
    assert_eq!(failure.settle(), Settle::Retry);
    let Failure::Handler(failed) = failure else { panic!("the handler's own error") };
    assert_eq!((failed.handler, failed.key), ("tests.natural", None));

    let panicking = Message::new("k1", [Step::Effect("e"), Step::Panic]);
    assert_eq!(kind(natural(&engine, &panicking).await), ErrorKind::Panicked);
    assert_eq!(db.effects("e").await, 0);
    assert!(natural(&engine, &Message::new("k1", [Step::Effect("e")])).await.is_ok());
    assert_eq!((db.effects("e").await, db.keys().await), (1, 0));
}

pub(super) async fn contention_without_a_key_runs_the_whole_transaction_again<S: TestStore>(db: Arc<Db<S>>) {
    let Some(contention) = S::CONTENTION else {
        return;
    };
    let engine = db.engine(1).await;
    let msg = Message {
        first_run: Some(vec![Step::Effect("run 1"), Step::Sql(contention.into())]),
        ..Message::new("e1", [Step::Effect("run 2")])
    };
    assert_eq!(natural(&engine, &msg).await.unwrap(), Outcome::Applied(2));
    assert_eq!((db.effects("run 1").await, db.effects("run 2").await), (0, 1));
    let hopeless = Message::new("e1", [Step::Sql(contention.into())]);
    assert!(matches!(natural(&engine, &hopeless).await, Err(Failure::Handler(_))));
    assert_eq!(hopeless.runs(), 5);
}

pub(super) async fn a_transaction_that_escapes_without_a_key_is_found_out<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    for end in ["COMMIT", "ROLLBACK"] {
        let msg = Message::new("k1", [Step::Effect("e"), Step::Sql(end.into())]);
        let failure = natural(&engine, &msg).await.unwrap_err();
        assert_eq!(failure.kind(), Some(ErrorKind::Escaped));
        assert!(!failure.to_string().contains(" key"), "{failure}");
    }
}

/// The rest of the effect is lost, and nobody is asked to deliver it again.
pub(super) async fn at_most_once_is_acknowledged_whatever_happens<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    // It needs no connection: the pool's only one is taken.
    let _taken = engine.pool().acquire().await.unwrap();
    let handled = ping(&engine, &Ping::Answered(7)).await;
    assert_eq!((Settle::of(&handled), handled.unwrap()), (Settle::Ack, Outcome::Applied(7)));

    let failed = ping(&engine, &Ping::Failed).await;
    assert_eq!(Settle::of(&failed), Settle::Ack);
    assert_eq!(
        failed.unwrap_err().to_string(),
        "handler `tests.ping`: the handler returned an error; its delivery was acknowledged before it ran, so no redelivery \
         comes and the event is lost: a single ping"
    );
    // A consumer runs it as a type.
    let panicked = engine.handle::<ping>(&Ping::Panicked("no route"), &()).await;
    assert_eq!(Settle::of(&panicked), Settle::Ack);
    let failure = panicked.unwrap_err();
    assert_eq!(failure.kind(), Some(ErrorKind::Lost));
    assert_eq!(
        failure.to_string(),
        "handler `tests.ping`: an at-most-once handler panicked: no route; its delivery was acknowledged before it ran, so \
         no redelivery comes and the event is lost: a single ping"
    );
}
