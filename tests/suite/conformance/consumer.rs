//! The consumer's loop, with the database as the queue. [B47, B49]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_runtime::{
    Adapter, AdapterError, Connected, Consumer, DatabaseQueue, DatabaseReceipt, Delivery, Engine, ErrorKind, Incoming,
    Lag, Retries, RetryPolicy, Route, Settlement,
};
use idem_tests::{Consumes, Db, Gate, TestStore, Wire};
use tokio::sync::Semaphore;

const LEFT: &str = "SELECT count(*) FROM idem_queue";

const WAITING: &str = "SELECT count(*) FROM idem_queue WHERE dead_at IS NULL";

struct Setup<S: Consumes> {
    engine: Engine<S>,
    queue: DatabaseQueue<S>,
    gate: Arc<Gate>,
}

impl<S: Consumes> Setup<S> {
    async fn new(db: &Db<S>) -> Self {
        let pool = db.pool(4).await;
        let queue = DatabaseQueue::new(&pool, "events").poll(Duration::from_millis(10));
        Self { engine: Engine::start(pool).await.unwrap(), queue, gate: Arc::default() }
    }

    /// A consumer without handlers that does not wait long.
    fn bare(&self) -> Consumer<S, DatabaseQueue<S>> {
        let quick = RetryPolicy::default().attempts(3).first(Duration::from_millis(2));
        Consumer::new(&self.engine, self.queue.clone()).retry(quick).grace(Duration::from_secs(5))
    }

    fn consumer(&self) -> Consumer<S, DatabaseQueue<S>> {
        self.bare().route(Route::<S, S::Apply>::with_state(Arc::clone(&self.gate)))
    }

    async fn send(&self, messages: impl IntoIterator<Item = Wire>) {
        for message in messages {
            self.queue.enqueue(&message.message()).await.unwrap();
        }
    }

    async fn reached(&self) {
        self.gate.reached.acquire().await.unwrap().forget();
    }
}

/// Waits until a number of the judge's is what it should be.
async fn until<S: TestStore>(db: &Db<S>, sql: &str, number: i64) {
    let wait = async {
        while db.number(sql).await != number {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap();
}

pub(super) async fn every_event_is_applied_once_and_the_queue_is_empty<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    for round in 0..3 {
        setup.send((0..50).map(|number| Wire::failing(format!("e{number}"), u32::from(number % 7 == round) * 2))).await;
    }
    let consuming = setup.consumer().start().await.unwrap();
    consuming.until_settled().await;
    assert!(consuming.caught_up()().await);
    consuming.stop().await;
    assert_eq!((db.number("SELECT count(DISTINCT note) FROM effect").await, db.keys().await), (50, 50));
    assert_eq!((db.number("SELECT count(*) FROM effect").await, db.number(LEFT).await), (50, 0));
}

/// One of them is another consumer's by now.
pub(super) async fn acknowledged_together_each_has_an_answer_of_its_own<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    setup.send((0..4).map(|number| Wire::new(format!("e{number}")))).await;
    let deliveries = setup.queue.receive(3).await.unwrap();
    db.run(
        "UPDATE idem_queue SET holder = 7 WHERE id = (SELECT id FROM (SELECT min(id) AS id FROM idem_queue) AS first)",
    )
    .await;
    let acked = setup.queue.ack_all(&deliveries).await;
    assert_eq!(acked.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, true]);
    assert!(acked[0].as_ref().unwrap_err().to_string().contains("handed out again"));
    assert_eq!((db.number(LEFT).await, db.number("SELECT count(*) FROM idem_queue WHERE holder = 7").await), (2, 1));
}

/// Two consumers, duplicates within batches and across them, and failures in between.
pub(super) async fn batches_apply_every_event_once<S: Consumes>(db: Arc<Db<S>>) {
    let (one, other) = (Setup::new(&db).await, Setup::new(&db).await);
    for round in 0..3 {
        one.send((0..200).map(|number| Wire::failing(format!("e{number}"), u32::from(number % 40 == round)))).await;
    }
    one.send([Wire::failing("poison", 99)]).await;
    let consuming =
        (one.consumer().batch(20).start().await.unwrap(), other.consumer().batch(20).start().await.unwrap());
    until(&db, WAITING, 0).await;
    tokio::join!(consuming.0.stop(), consuming.1.stop());
    assert_eq!((db.number("SELECT count(DISTINCT note) FROM effect").await, db.keys().await), (200, 200));
    assert_eq!((db.number("SELECT count(*) FROM effect").await, db.number(LEFT).await), (200, 1));
    assert!(db.number("SELECT count(DISTINCT claim) FROM idem_key").await < 150);
}

pub(super) async fn two_consumers_share_a_queue<S: Consumes>(db: Arc<Db<S>>) {
    let (one, other) = (Setup::new(&db).await, Setup::new(&db).await);
    one.send((0..100).map(|number| Wire::new(format!("e{number}")))).await;
    let consuming = (one.consumer().start().await.unwrap(), other.consumer().start().await.unwrap());
    consuming.0.until_settled().await;
    tokio::join!(consuming.0.stop(), consuming.1.stop());
    assert_eq!((db.number("SELECT count(*) FROM effect").await, db.number(LEFT).await), (100, 0));
    // Taken once each, so that no handler ran in vain.
    for number in 0..100 {
        let id = format!("e{number}");
        assert_eq!(one.gate.runs(&id) + other.gate.runs(&id), 1, "{id}");
    }
}

/// [B49] Bounded attempts, then the dead letters; what comes behind flows on.
pub(super) async fn what_never_succeeds_waits_for_a_human_with_its_reason<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    let huge = vec![b'x'; 10_000_000];
    for body in [&b"{\"id\": "[..], b"", b"\xff\xfe", &huge] {
        setup.queue.enqueue(&Incoming::new(body)).await.unwrap();
    }
    setup.send([Wire::failing("poison", 3), Wire::new(""), Wire::new("fine")]).await;
    let consuming = setup.consumer().start().await.unwrap();
    until(&db, WAITING, 0).await;
    let dead = setup.queue.dead_letters(100).await.unwrap();
    let found: Vec<_> = dead.iter().map(|dead| (dead.attempts, dead.reason.as_str())).collect();
    assert_eq!(found.len(), 6, "{found:?}");
    for (attempts, reason) in &found[..4] {
        assert_eq!(*attempts, 1);
        assert!(reason.contains("the message cannot be decoded"), "{reason}");
    }
    assert_eq!((dead[3].message.body.len(), found[4].0), (huge.len(), 3));
    let text = "given up after 3 attempts; the last one: handler `";
    assert!(found[4].1.starts_with(text) && found[4].1.ends_with("run 3 of poison fails, as told"), "{}", found[4].1);
    assert!(found[5].1.contains("the event has no usable key"), "{}", found[5].1);
    assert_eq!((setup.gate.runs("poison"), db.effects("poison").await, db.effects("fine").await), (3, 0, 1));

    // Mended, and delivered again by hand.
    assert!(setup.queue.deliver_again(dead[4].id).await.unwrap());
    until(&db, LEFT, 5).await;
    assert_eq!(db.effects("poison").await, 1);
    assert!(!setup.queue.deliver_again(dead[4].id).await.unwrap());
    consuming.stop().await;
}

pub(super) async fn all_handlers_of_a_message_are_done_before_the_ack<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    setup.send([Wire::failing("both", 2), Wire::failing("never", 9)]).await;
    let only_both = Route::<S, S::Second>::with_state(Arc::clone(&setup.gate))
        .when(|message| String::from_utf8_lossy(&message.body).contains("both"));
    let consuming = setup.consumer().route(only_both).start().await.unwrap();
    until(&db, WAITING, 0).await;
    consuming.stop().await;
    assert_eq!((db.effects("both").await, db.effects("second both").await), (1, 1));
    assert_eq!((db.effects("never").await, db.effects("second never").await), (0, 0));
    assert_eq!((setup.gate.runs("both"), db.number(LEFT).await), (3, 1));

    // Taken by nobody.
    let nobody = Route::<S, S::Second>::with_state(Arc::clone(&setup.gate)).when(|_| false);
    setup.send([Wire::new("unwanted")]).await;
    let consuming = setup.bare().route(nobody).start().await.unwrap();
    until(&db, WAITING, 0).await;
    consuming.stop().await;
    let dead = setup.queue.dead_letters(10).await.unwrap();
    assert_eq!(dead[1].reason, "no handler of the consumer takes this message");
}

pub(super) async fn at_most_once_is_acknowledged_before_it_runs<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    let telling = Route::<S, S::Tell>::with_state(Arc::clone(&setup.gate));
    let consuming = setup.bare().route(telling).start().await.unwrap();
    setup.send([Wire { fails: 9, ..Wire::waiting("ping") }]).await;
    setup.reached().await;
    assert_eq!(db.number(LEFT).await, 0);
    setup.gate.open.add_permits(1);
    consuming.until_settled().await;
    // A body that is no message was not acknowledged, for all that.
    setup.queue.enqueue(&Incoming::new("{}")).await.unwrap();
    until(&db, "SELECT count(*) FROM idem_queue WHERE dead_at IS NOT NULL", 1).await;
    consuming.stop().await;
    assert_eq!(setup.gate.runs("ping"), 1);
}

/// [B47] One effect, no second copy, an ack at the end.
pub(super) async fn a_handler_slower_than_the_lease_keeps_its_message<S: Consumes>(db: Arc<Db<S>>) {
    let mut setup = Setup::new(&db).await;
    setup.queue = setup.queue.lease(Duration::from_secs(1));
    let consuming = (setup.consumer().start().await.unwrap(), setup.consumer().start().await.unwrap());
    setup.send([Wire::waiting("slow")]).await;
    setup.reached().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((setup.gate.runs("slow"), db.number(WAITING).await), (1, 1));
    setup.gate.open.add_permits(1);
    until(&db, LEFT, 0).await;
    tokio::join!(consuming.0.stop(), consuming.1.stop());
    assert_eq!((setup.gate.runs("slow"), db.effects("slow").await), (1, 1));
}

pub(super) async fn what_does_not_end_in_time_is_rolled_back_and_given_back<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    let consuming = setup.consumer().grace(Duration::from_millis(50)).start().await.unwrap();
    setup.send([Wire::waiting("stuck")]).await;
    setup.reached().await;
    assert_eq!(consuming.in_flight(), 1);
    consuming.stop().await;
    // As if nobody had taken it, and for another consumer at once.
    assert_eq!((db.effects("stuck").await, db.keys().await), (0, 0));
    assert_eq!(db.number("SELECT count(*) FROM idem_queue WHERE attempts = 0 AND holder IS NULL").await, 1);
    let consuming = setup.consumer().start().await.unwrap();
    setup.reached().await;
    // What ends within the grace is settled.
    let stopping = consuming.stop();
    setup.gate.open.add_permits(1);
    stopping.await;
    assert_eq!((db.effects("stuck").await, db.number(LEFT).await), (1, 0));
}

pub(super) async fn a_message_in_a_transaction_is_there_with_its_commit<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    for commits in [false, true] {
        let mut conn = setup.engine.pool().acquire().await.unwrap();
        S::run(&mut conn, S::BEGIN).await.unwrap();
        let message = Wire::new("e1").message().with_header("kind", "paid");
        setup.queue.enqueue_in(&mut conn, &message).await.unwrap();
        S::run(&mut conn, if commits { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
        assert_eq!(db.number(LEFT).await, i64::from(commits));
    }
    let paid = Route::<S, S::Apply>::with_state(Arc::clone(&setup.gate))
        .when(|message| message.header("kind") == Some("paid"));
    let consuming = setup.bare().route(paid).start().await.unwrap();
    consuming.until_settled().await;
    consuming.stop().await;
    assert_eq!((db.effects("e1").await, db.number(LEFT).await), (1, 0));
}

/// An outage is no fault of the events, and must not park them all.
pub(super) async fn a_database_in_trouble_costs_no_attempts<S: Consumes>(db: Arc<Db<S>>) {
    if S::NAME == "SQLite" {
        // It has no code for a table that is missing.
        return;
    }
    let setup = Setup::new(&db).await;
    db.run("ALTER TABLE idem_key RENAME TO away").await;
    setup.send((0..5).map(|number| Wire::new(format!("e{number}")))).await;
    let seen = Arc::new(Seen::default());
    let quick = RetryPolicy::default().attempts(3).first(Duration::from_millis(2)).longest(Duration::from_millis(20));
    let consumer = Consumer::new(&setup.engine, Watched { queue: setup.queue.clone(), seen: Arc::clone(&seen) });
    let route = Route::<S, S::Apply>::with_state(Arc::clone(&setup.gate));
    let consuming = consumer.retry(quick).route(route).start().await.unwrap();
    // More often than an event may fail, and by one delivery at a time.
    for _ in 0..20 {
        seen.released.acquire().await.unwrap().forget();
    }
    db.run("ALTER TABLE away RENAME TO idem_key").await;
    consuming.until_settled().await;
    consuming.stop().await;
    assert_eq!((db.number("SELECT count(*) FROM effect").await, db.number(LEFT).await), (5, 0));
    assert_eq!(seen.most_attempts.load(Ordering::SeqCst), 1);
}

/// What a consumer tells its queue.
struct Seen {
    released: Semaphore,
    most_attempts: AtomicU32,
}

impl Default for Seen {
    fn default() -> Self {
        Self { released: Semaphore::new(0), most_attempts: AtomicU32::new(0) }
    }
}

struct Watched<S: Consumes> {
    queue: DatabaseQueue<S>,
    seen: Arc<Seen>,
}

impl<S: Consumes> Adapter for Watched<S> {
    type Receipt = DatabaseReceipt;
    const BROKER: &'static str = "watched";
    const RETRIES: Retries = Retries::ByBroker;

    fn source(&self) -> String {
        self.queue.source()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        self.queue.connect().await
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<DatabaseReceipt>>, AdapterError> {
        let deliveries = self.queue.receive(max).await?;
        let attempts = deliveries.iter().map(|delivery| delivery.attempt).max().unwrap_or(0);
        self.seen.most_attempts.fetch_max(attempts, Ordering::SeqCst);
        Ok(deliveries)
    }

    async fn settle(&self, delivery: &Delivery<DatabaseReceipt>, how: &Settlement) -> Result<(), AdapterError> {
        self.queue.settle(delivery, how).await?;
        if matches!(how, Settlement::Release { .. }) {
            self.seen.released.add_permits(1);
        }
        Ok(())
    }

    async fn extend(&self, receipt: &DatabaseReceipt) -> Result<(), AdapterError> {
        self.queue.extend(receipt).await
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        self.queue.lag().await
    }
}

pub(super) async fn a_consumer_that_cannot_work_says_so_at_its_start<S: Consumes>(db: Arc<Db<S>>) {
    let setup = Setup::new(&db).await;
    let error = setup.bare().start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Registry);

    let mut misnamed = Setup::new(&db).await;
    misnamed.queue = DatabaseQueue::new(setup.engine.pool(), "the events");
    let error = misnamed.consumer().start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokerRefused);
    assert!(error.to_string().contains("database `the events`: a queue's name is 1 to 128"), "{error}");
    assert_eq!(misnamed.queue.enqueue(&Incoming::default()).await.unwrap_err().kind(), ErrorKind::BrokerRefused);

    db.run("DROP TABLE idem_queue").await;
    let error = setup.consumer().start().await.unwrap_err();
    let expected = if S::NAME == "SQLite" { ErrorKind::BrokerUnavailable } else { ErrorKind::BrokerRefused };
    assert_eq!(error.kind(), expected, "{error}");
    setup.engine.pool().close().await;
    let error = setup.consumer().start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokerUnavailable);
    assert!(error.to_string().contains("nothing is lost"), "{error}");
}
