//! The consumer's loop over a broker that does what the test says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_runtime::{
    Adapter, AdapterError, Connected, Consumer, Consuming, Delivery, Engine, Error, ErrorKind, Lag, Retries,
    RetryPolicy, Route, Settlement,
};
use idem_tests::{Consumes, Db, Gate, Wire};
use sqlx::Sqlite;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

type Received = Result<Vec<Delivery<u32>>, AdapterError>;

/// The broker's end of the test.
struct Script {
    deliveries: UnboundedSender<Received>,
    /// The number of each delivery, and what it was settled with.
    settled: UnboundedReceiver<(u32, Settlement)>,
    connected: UnboundedReceiver<bool>,
    answers: Arc<Answers>,
    gate: Arc<Gate>,
}

/// What the broker answers, in order; when there is nothing more, everything works.
#[derive(Default)]
struct Answers {
    connect: Mutex<VecDeque<AdapterError>>,
    settle: Mutex<VecDeque<AdapterError>>,
    horizon: Mutex<Option<Duration>>,
}

struct Scripted<const IN_PROCESS: bool> {
    deliveries: tokio::sync::Mutex<UnboundedReceiver<Received>>,
    settled: UnboundedSender<(u32, Settlement)>,
    connected: UnboundedSender<bool>,
    answers: Arc<Answers>,
}

impl<const IN_PROCESS: bool> Adapter for Scripted<IN_PROCESS> {
    type Receipt = u32;
    const BROKER: &'static str = "scripted";
    const RETRIES: Retries = if IN_PROCESS { Retries::InProcess } else { Retries::ByBroker };

    fn source(&self) -> String {
        "script".to_owned()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        let answer = self.answers.connect.lock().unwrap().pop_front();
        _ = self.connected.send(answer.is_none());
        let connected = Connected::new().lease(Duration::from_secs(60));
        match (answer, *self.answers.horizon.lock().unwrap()) {
            (Some(error), _) => Err(error),
            (None, Some(horizon)) => Ok(connected.horizon(horizon, "its message-ttl")),
            (None, None) => Ok(connected),
        }
    }

    async fn receive(&self, _: usize) -> Received {
        match self.deliveries.lock().await.recv().await {
            Some(received) => received,
            None => std::future::pending().await,
        }
    }

    async fn settle(&self, delivery: &Delivery<u32>, settlement: &Settlement) -> Result<(), AdapterError> {
        drop(self.settled.send((delivery.receipt, settlement.clone())));
        self.answers.settle.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }

    async fn extend(&self, _: &u32) -> Result<(), AdapterError> {
        Ok(())
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        Ok(None)
    }
}

impl Script {
    fn new<const IN_PROCESS: bool>() -> (Self, Scripted<IN_PROCESS>) {
        let (deliveries, received) = unbounded_channel();
        let (settling, settled) = unbounded_channel();
        let (connecting, connected) = unbounded_channel();
        let answers = Arc::<Answers>::default();
        let script = Self { deliveries, settled, connected, answers: Arc::clone(&answers), gate: Arc::default() };
        let deliveries = tokio::sync::Mutex::new(received);
        (script, Scripted { deliveries, settled: settling, connected: connecting, answers })
    }

    async fn start<const IN_PROCESS: bool>(
        &self,
        engine: &Engine<Sqlite>,
        adapter: Scripted<IN_PROCESS>,
        configure: impl FnOnce(Consumer<Sqlite, Scripted<IN_PROCESS>>) -> Consumer<Sqlite, Scripted<IN_PROCESS>>,
    ) -> Result<Consuming, Error> {
        let quick = RetryPolicy::default().attempts(3).first(Duration::from_millis(2));
        let consumer = Consumer::new(engine, adapter).retry(quick).concurrency(4);
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::clone(&self.gate));
        configure(consumer.route(route)).start().await
    }

    fn deliver(&self, deliveries: impl IntoIterator<Item = Delivery<u32>>) {
        self.deliveries.send(Ok(deliveries.into_iter().collect())).unwrap();
    }

    async fn settled(&mut self) -> (u32, Settlement) {
        tokio::time::timeout(Duration::from_secs(20), self.settled.recv()).await.unwrap().unwrap()
    }
}

fn delivery(number: u32, message: &Wire) -> Delivery<u32> {
    Delivery::new(message.message(), 1, number)
}

#[tokio::test]
async fn what_has_an_order_keeps_it_and_holds_nothing_else_up() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<true>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer).await.unwrap();
        // The first fails twice, and waits in between.
        script.deliver([
            delivery(1, &Wire::failing("first", 2)).in_order(7),
            delivery(2, &Wire::new("second")).in_order(7),
            delivery(3, &Wire::new("third")).in_order(7),
            delivery(4, &Wire::new("other")).in_order(8),
        ]);
        let mut order = Vec::new();
        for _ in 0..4 {
            let (number, settlement) = script.settled().await;
            assert_eq!(settlement, Settlement::Ack);
            order.push(number);
        }
        order.retain(|number| *number != 4);
        assert_eq!(order, [1, 2, 3]);
        assert_eq!((script.gate.runs("first"), script.gate.runs("second")), (3, 1));
        consuming.stop().await;
        assert_eq!(db.number("SELECT count(*) FROM effect").await, 4);
    })
    .await;
}

/// The second must not overtake the first, which comes again from the broker.
#[tokio::test]
async fn behind_what_comes_again_in_order_everything_comes_again() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<false>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer).await.unwrap();
        script.deliver([
            delivery(1, &Wire::failing("first", 1)).in_order(7),
            delivery(2, &Wire::new("second")).in_order(7),
            delivery(3, &Wire::new("third")).in_order(7),
        ]);
        assert!(matches!(script.settled().await, (1, Settlement::Retry { .. })));
        for number in [2, 3] {
            assert_eq!(script.settled().await, (number, Settlement::Release { after: Duration::ZERO }));
        }
        assert_eq!((script.gate.runs("second"), script.gate.runs("third")), (0, 0));
        script.deliver([
            Delivery::new(Wire::failing("first", 1).message(), 2, 4).in_order(7),
            delivery(5, &Wire::new("second")).in_order(7),
        ]);
        assert_eq!(script.settled().await, (4, Settlement::Ack));
        assert_eq!(script.settled().await, (5, Settlement::Ack));
        consuming.stop().await;
    })
    .await;
}

const TRANSACTIONS: &str = "SELECT count(DISTINCT claim) FROM idem_key";

#[tokio::test]
async fn a_batch_shares_a_transaction_until_one_of_it_fails() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<true>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer.batch(3)).await.unwrap();
        let plain = |number: u32| delivery(number, &Wire::new(format!("e{number}")));
        script.deliver((0..6).map(plain));
        for _ in 0..6 {
            assert_eq!(script.settled().await.1, Settlement::Ack);
        }
        assert_eq!((db.keys().await, db.number(TRANSACTIONS).await), (6, 2));

        // Fails in its batch and once more alone; a body that is none; one that failed before.
        let fails = Wire::failing("fails", 2);
        let body = Delivery::new(idem_runtime::Incoming::new("{"), 1, 12);
        script.deliver([delivery(10, &fails), plain(11), body]);
        script.deliver([Delivery::new(Wire::failing("again", 1).message(), 2, 13), plain(14), plain(15)]);
        let mut settled = Vec::new();
        for _ in 0..6 {
            settled.push(script.settled().await);
        }
        settled.sort_by_key(|(number, _)| *number);
        let is_acked = |(_, settlement): &(u32, Settlement)| *settlement == Settlement::Ack;
        assert_eq!(settled.iter().map(is_acked).collect::<Vec<_>>(), [true, true, false, true, true, true]);
        let Settlement::DeadLetter { reason } = &settled[2].1 else { panic!("{settled:?}") };
        assert!(reason.contains("cannot be decoded"), "{reason}");
        assert_eq!((script.gate.runs("fails"), script.gate.runs("again")), (3, 2));
        // Three together, and two of the last ones.
        assert_eq!((db.keys().await, db.number(TRANSACTIONS).await), (11, 6));
        assert_eq!(db.number("SELECT count(*) FROM effect").await, 11);
        consuming.stop().await;
    })
    .await;
}

/// Batches of an order follow each other, and whoever failed holds its order up.
#[tokio::test]
async fn batches_keep_the_order() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<true>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer.batch(4)).await.unwrap();
        let fails = |number: u32| if number == 5 { 2 } else { 0 };
        let wire = |number: u32| Wire::failing(format!("e{number}"), fails(number));
        script.deliver((0..20).map(|number| delivery(number, &wire(number)).in_order(u64::from(number % 2))));
        script.deliver((20..30).map(|number| delivery(number, &wire(number)).in_order(u64::from(number % 2))));
        let mut settled = Vec::new();
        for _ in 0..30 {
            let (number, settlement) = script.settled().await;
            assert_eq!(settlement, Settlement::Ack);
            settled.push(number);
        }
        for order in 0..2 {
            let of_it: Vec<_> = settled.iter().filter(|number| *number % 2 == order).collect();
            assert!(of_it.is_sorted(), "{settled:?}");
        }
        let notes = "SELECT count(*) FROM effect AS one JOIN effect AS two ON one.rowid < two.rowid \
                     AND CAST(substr(one.note, 2) AS INTEGER) > CAST(substr(two.note, 2) AS INTEGER) \
                     AND substr(one.note, 2) % 2 = substr(two.note, 2) % 2";
        assert_eq!((db.number(notes).await, db.keys().await), (0, 30));
        assert!(db.number(TRANSACTIONS).await < 20);
        consuming.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_stop_gives_back_what_waits_behind_another_one() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<true>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer).await.unwrap();
        script
            .deliver([delivery(1, &Wire::waiting("first")).in_order(7), delivery(2, &Wire::new("second")).in_order(7)]);
        script.gate.reached.acquire().await.unwrap().forget();
        assert_eq!(consuming.in_flight(), 2);
        let stopping = tokio::spawn(consuming.stop());
        assert_eq!(script.settled().await, (2, Settlement::Release { after: Duration::ZERO }));
        script.gate.open.add_permits(1);
        assert_eq!(script.settled().await, (1, Settlement::Ack));
        stopping.await.unwrap();
        assert_eq!((db.effects("first").await, db.effects("second").await), (1, 0));
    })
    .await;
}

#[tokio::test]
async fn retries_in_process_end_in_one_settlement() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<true>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer).await.unwrap();
        script.deliver([delivery(1, &Wire::failing("poison", 9))]);
        let (number, settlement) = script.settled().await;
        let Settlement::DeadLetter { reason } = settlement else { panic!("{settlement:?}") };
        assert_eq!((number, script.gate.runs("poison")), (1, 3));
        assert!(reason.contains("given up after 3 attempts"), "{reason}");
        // Counted by the broker before: one attempt is left.
        script.deliver([Delivery::new(Wire::failing("old", 9).message(), 3, 2)]);
        assert!(matches!(script.settled().await, (2, Settlement::DeadLetter { .. })));
        assert_eq!(script.gate.runs("old"), 1);
        consuming.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_broker_that_goes_away_is_tried_until_it_is_back() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<false>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer).await.unwrap();
        assert!(script.connected.recv().await.unwrap());
        for _ in 0..6 {
            script.answers.connect.lock().unwrap().push_back(AdapterError::unreachable("nobody there"));
        }
        // Whatever it says: once it has started, a consumer does not end by itself.
        script.answers.connect.lock().unwrap().push_back(AdapterError::refused("the queue is gone"));
        script.deliveries.send(Err(AdapterError::unreachable("the connection was reset"))).unwrap();
        for _ in 0..7 {
            assert!(!script.connected.recv().await.unwrap());
        }
        assert!(script.connected.recv().await.unwrap());
        script.deliver([delivery(1, &Wire::new("after"))]);
        assert_eq!(script.settled().await, (1, Settlement::Ack));
        consuming.stop().await;
    })
    .await;
}

#[tokio::test]
async fn what_the_broker_does_not_hear_is_said_again_and_then_left_to_it() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<false>();
        let consuming = script.start(&db.engine(4).await, adapter, |consumer| consumer).await.unwrap();
        let answer = |error| script.answers.settle.lock().unwrap().push_back(error);
        answer(AdapterError::unreachable("a moment, please"));
        script.deliver([delivery(1, &Wire::new("one"))]);
        assert_eq!([script.settled().await, script.settled().await], [(1, Settlement::Ack), (1, Settlement::Ack)]);

        // Not ours any more: saying it again helps nobody.
        script.answers.settle.lock().unwrap().push_back(AdapterError::stale("the lease ended"));
        script.deliver([delivery(2, &Wire::new("two"))]);
        assert_eq!(script.settled().await, (2, Settlement::Ack));

        // No place for dead letters: kept back, and not at once again.
        script.answers.settle.lock().unwrap().push_back(AdapterError::refused("there is no dead-letter queue"));
        script.deliver([delivery(3, &Wire::new(""))]);
        assert!(matches!(script.settled().await, (3, Settlement::DeadLetter { .. })));
        let (3, Settlement::Retry { after }) = script.settled().await else { panic!("kept back") };
        assert!(after >= Duration::from_secs(10), "{after:?}");

        script.deliver([delivery(4, &Wire::new("four"))]);
        assert_eq!(script.settled().await, (4, Settlement::Ack));
        consuming.stop().await;
        assert!(script.settled.try_recv().is_err());
    })
    .await;
}

/// [B39] `tests.apply` keeps its keys for seven days, and declares a redelivery of one.
#[tokio::test]
async fn a_redelivery_that_outlives_the_declaration_is_named_at_the_start() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(4).await;
        for (days, is_refused) in [(1, false), (2, true), (14, true)] {
            let (script, adapter) = Script::new::<false>();
            *script.answers.horizon.lock().unwrap() = Some(Duration::from_secs(days * 86_400));
            let started = script.start(&engine, adapter, Consumer::strict).await;
            assert_eq!(started.is_err(), is_refused, "{days} days");
            if let Err(error) = started {
                assert_eq!(error.kind(), ErrorKind::BrokerRefused);
                let (text, horizon) =
                    (error.to_string(), format!("after {} seconds, by its message-ttl", days * 86_400));
                for part in ["tests.apply.sqlite", "keeps its keys for 7d", "86400 seconds", &horizon] {
                    assert!(text.contains(part), "{text}");
                }
            }
            // Not strict: it is a warning.
            let (script, adapter) = Script::new::<false>();
            *script.answers.horizon.lock().unwrap() = Some(Duration::from_secs(days * 86_400));
            script.start(&engine, adapter, |consumer| consumer).await.unwrap().stop().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_stop_gives_back_what_waits_for_its_turn_or_its_next_attempt() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<true>();
        let slow = RetryPolicy::default().first(Duration::from_secs(600)).longest(Duration::from_secs(600));
        let consumer = |consumer: Consumer<_, _>| consumer.concurrency(1).retry(slow);
        let consuming = script.start(&db.engine(4).await, adapter, consumer).await.unwrap();
        // The first waits for its next attempt, the second runs, the third waits for its turn.
        script.deliver([delivery(1, &Wire::failing("first", 9))]);
        while script.gate.runs("first") == 0 || consuming.in_flight() != 1 {
            tokio::task::yield_now().await;
        }
        script.deliver([delivery(2, &Wire::waiting("second"))]);
        script.gate.reached.acquire().await.unwrap().forget();
        script.deliver([delivery(3, &Wire::new("third"))]);
        while consuming.in_flight() != 3 {
            tokio::task::yield_now().await;
        }
        let stopping = tokio::spawn(consuming.stop());
        let mut released = [script.settled().await, script.settled().await];
        released.sort_by_key(|(number, _)| *number);
        let release = Settlement::Release { after: Duration::ZERO };
        assert_eq!(released, [(1, release.clone()), (3, release)]);
        script.gate.open.add_permits(1);
        assert_eq!(script.settled().await, (2, Settlement::Ack));
        stopping.await.unwrap();
        assert_eq!((db.number("SELECT count(*) FROM effect").await, script.gate.runs("third")), (1, 0));
    })
    .await;
}

/// [B48] An acknowledgement is the last word, even when the handler behind it does not end.
#[tokio::test]
async fn what_was_acknowledged_first_is_not_settled_again() {
    Db::<Sqlite>::test(async |db| {
        let (mut script, adapter) = Script::new::<false>();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Tell>::with_state(Arc::clone(&script.gate));
        let consumer = Consumer::new(&db.engine(4).await, adapter).grace(Duration::from_millis(20)).route(route);
        let consuming = consumer.start().await.unwrap();
        script.deliver([delivery(1, &Wire::waiting("hung"))]);
        script.gate.reached.acquire().await.unwrap().forget();
        consuming.stop().await;
        assert_eq!(script.settled().await, (1, Settlement::Ack));
        assert!(script.settled.try_recv().is_err());
        assert_eq!(script.gate.runs("hung"), 1);
    })
    .await;
}
