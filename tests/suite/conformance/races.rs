//! Deliveries at the same moment (class F).

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::ErrorKind;
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A point in a handler's body that a test waits for, and one that the handler waits at.
pub(crate) fn points() -> (Arc<Semaphore>, Arc<Semaphore>) {
    (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)))
}

pub(crate) async fn reached(point: &Semaphore) {
    tokio::time::timeout(Duration::from_secs(30), point.acquire())
        .await
        .expect("the body comes here")
        .unwrap()
        .forget();
}

/// [B23]
pub(super) async fn of_many_deliveries_at_once_one_is_applied<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(16).await;
    let (inside, go_on) = points();
    let msg = Arc::new(Message::new(
        "e1",
        [Step::Effect("e1"), Step::Reach(Arc::clone(&inside)), Step::Await(Arc::clone(&go_on))],
    ));
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (engine, msg) = (engine.clone(), Arc::clone(&msg));
        tasks.spawn(async move { deliver(&engine, &msg).await });
    }
    reached(&inside).await;
    // The others have had their turn when they are waiting for a connection or for the key; nothing tells from outside,
    // and the test holds whether they have or not.
    tokio::task::yield_now().await;
    go_on.add_permits(1);
    let ended = tasks.join_all().await;
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Applied).count(), 1, "{ended:?}");
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Duplicate).count(), 31, "{ended:?}");
    assert_eq!((db.effects("e1").await, db.keys().await, msg.runs()), (1, 1, 1));
}

/// Starts a delivery that holds the key, and returns once its body is inside.
async fn holder<S: TestStore>(
    engine: &idem_runtime::Engine<S>,
    last: Option<Step>,
) -> (tokio::task::JoinHandle<Delivered>, Arc<Semaphore>) {
    let (inside, go_on) = points();
    let steps = [Step::Effect("e1"), Step::Reach(Arc::clone(&inside)), Step::Await(Arc::clone(&go_on))];
    let msg = Message::new("e1", steps.into_iter().chain(last));
    let engine = engine.clone();
    let task = tokio::spawn(async move { deliver(&engine, &msg).await });
    reached(&inside).await;
    (task, go_on)
}

pub(super) async fn a_delivery_waits_for_the_one_in_flight<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(4).await;
    let (first, go_on) = holder(&engine, None).await;
    let second = tokio::spawn({
        let engine = engine.clone();
        async move { deliver(&engine, &Message::new("e1", [Step::Effect("e1")])).await }
    });
    go_on.add_permits(1);
    assert_eq!(first.await.unwrap(), Delivered::Applied);
    assert_eq!(second.await.unwrap(), Delivered::Duplicate);
    assert_eq!((db.effects("e1").await, db.keys().await), (1, 1));
}

pub(super) async fn past_its_bound_the_wait_is_busy<S: TestStore>(db: Arc<Db<S>>) {
    let setup = if S::NAME == "SQLite" { "PRAGMA busy_timeout = 50" } else { "SELECT 1" };
    let pool = db.pool_with(4, setup).await;
    let engine = idem_runtime::Engine::builder(pool).claim_wait(Duration::from_millis(1_000)).start().await.unwrap();
    let (first, go_on) = holder(&engine, None).await;
    let second = Message::new("e1", [Step::Effect("e1")]);
    let waiting = Duration::from_secs(20);
    let ended = tokio::time::timeout(waiting, deliver(&engine, &second)).await.expect("the wait is bounded");
    assert_eq!(ended, Delivered::Refused(ErrorKind::Busy));
    go_on.add_permits(1);
    assert_eq!(first.await.unwrap(), Delivered::Applied);
    assert_eq!(deliver(&engine, &second).await, Delivered::Duplicate);
    assert_eq!((db.effects("e1").await, second.runs()), (1, 0));
}

/// [B25] On InnoDB the waiters deadlock when the first rolls back, and all but one must run again.
pub(super) async fn waiters_take_over_when_the_first_fails<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(8).await;
    let (first, go_on) = holder(&engine, Some(Step::Fail)).await;
    let mut waiters = JoinSet::new();
    for _ in 0..6 {
        let engine = engine.clone();
        waiters.spawn(async move { deliver(&engine, &Message::new("e1", [Step::Effect("e1")])).await });
    }
    go_on.add_permits(1);
    assert_eq!(first.await.unwrap(), Delivered::Failed);
    let ended = waiters.join_all().await;
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Applied).count(), 1, "{ended:?}");
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Duplicate).count(), 5, "{ended:?}");
    assert_eq!((db.effects("e1").await, db.keys().await), (1, 1));
}

/// [B09] A deadlock whose error the handlers return: the victim's transaction is run again.
pub(super) async fn two_handlers_in_opposite_order_both_get_through<S: TestStore>(db: Arc<Db<S>>) {
    if S::CONTENTION.is_none() {
        return;
    }
    let engine = db.engine(4).await;
    let (inside, go_on) = points();
    let update = |id: u32| Step::Sql(format!("UPDATE account SET cents = cents + 1 WHERE id = {id}"));
    let meet = |first, second| {
        vec![update(first), Step::Reach(Arc::clone(&inside)), Step::Await(Arc::clone(&go_on)), update(second)]
    };
    let mut tasks = JoinSet::new();
    for (id, first, second) in [("e1", 1, 2), ("e2", 2, 1)] {
        let msg = Message { first_run: Some(meet(first, second)), ..Message::new(id, [update(first), update(second)]) };
        let engine = engine.clone();
        tasks.spawn(async move { (deliver(&engine, &msg).await, msg.runs()) });
    }
    reached(&inside).await;
    reached(&inside).await;
    go_on.add_permits(2);
    let ended = tasks.join_all().await;
    assert!(ended.iter().all(|(ended, _)| *ended == Delivered::Applied), "{ended:?}");
    assert_eq!(ended.iter().map(|(_, runs)| runs).sum::<usize>(), 3, "one of them is the victim: {ended:?}");
    let total = db.number("SELECT cents FROM account WHERE id = 1").await
        + db.number("SELECT cents FROM account WHERE id = 2").await;
    assert_eq!((total, db.keys().await), (4, 2));
}
