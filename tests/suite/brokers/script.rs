//! The behaviours. [class K: B43 to B49]

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Adapter, Consumer, Consuming, Engine, ErrorKind, Incoming, RetryPolicy, Route};
use idem_tests::{Consumes, Db, Gate, Wire};
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};

use super::TestBroker;

/// A lease that no test can wait for, so that what comes again was given back.
const LONG: Duration = Duration::from_secs(600);

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);

const EFFECTS: &str = "SELECT count(*) FROM effect";
const EVENTS: &str = "SELECT count(DISTINCT note) FROM effect";

struct Setup<B> {
    broker: B,
    db: Arc<Db<Sqlite>>,
    engine: Engine<Sqlite>,
    gate: Arc<Gate>,
}

impl<B: TestBroker> Setup<B> {
    /// Runs a test on a queue and a database of its own.
    async fn test(lease: Duration, test: impl AsyncFnOnce(&Self)) {
        Db::test(async |db| {
            let engine = Engine::start(db.pool(4).await).await.unwrap();
            let setup = Self { broker: B::create(lease).await, db, engine, gate: Arc::default() };
            test(&setup).await;
            setup.broker.destroy().await;
        })
        .await;
    }

    fn bare(&self, adapter: B::Adapter) -> Consumer<Sqlite, B::Adapter> {
        let quick = RetryPolicy::default().attempts(3).first(Duration::from_millis(2));
        Consumer::new(&self.engine, adapter).retry(quick).grace(Duration::from_secs(5))
    }

    fn consumer(&self) -> Consumer<Sqlite, B::Adapter> {
        self.bare(self.broker.adapter()).route(self.route())
    }

    fn route(&self) -> Route<Sqlite, <Sqlite as Consumes>::Apply> {
        Route::with_state(Arc::clone(&self.gate))
    }

    async fn start(&self) -> Consuming {
        self.consumer().start().await.unwrap()
    }

    async fn publish(&self, messages: impl IntoIterator<Item = Wire>) {
        self.broker.publish(messages.into_iter().map(|wire| wire.message()).collect()).await;
    }

    async fn reached(&self) {
        timeout(PATIENCE, self.gate.reached.acquire()).await.unwrap().unwrap().forget();
    }

    /// Waits until so many effects are there.
    async fn applied(&self, effects: i64) {
        let wait = async {
            while self.db.number(EFFECTS).await < effects {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap();
    }

    /// Waits until the broker holds so many messages.
    async fn unsettled(&self, number: u64) {
        self.unsettled_until(|left| left == number).await;
    }

    /// Waits until the broker holds fewer messages.
    async fn unsettled_below(&self, number: usize) {
        self.unsettled_until(|left| usize::try_from(left).is_ok_and(|left| left < number)).await;
    }

    async fn unsettled_until(&self, is_it: impl Fn(u64) -> bool) {
        let mut left = u64::MAX;
        let wait = async {
            loop {
                left = self.broker.unsettled().await;
                if is_it(left) {
                    break;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let is_late = timeout(PATIENCE, wait).await.is_err();
        assert!(!is_late, "{left} messages are not settled");
    }

    async fn is_applied_once(&self, events: i64) {
        let numbers = (self.db.number(EVENTS).await, self.db.number(EFFECTS).await, self.db.keys().await);
        assert_eq!(numbers, (events, events, events));
        self.unsettled(0).await;
        assert_eq!(self.broker.dead_letters().await, []);
    }
}

fn events(numbers: impl IntoIterator<Item = u32>) -> impl Iterator<Item = Wire> {
    numbers.into_iter().map(|number| Wire::new(format!("e{number}")))
}

/// 10,000 deliveries of 8,000 events. Every 50th fails at first, some twice.
pub(super) async fn ten_thousand_deliveries_are_applied_once<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        let (events, repeated) = (B::MANY / 5 * 4, B::MANY / 5);
        let fails = |number: u32| if number.is_multiple_of(50) { number / 50 % 2 + 1 } else { 0 };
        let first = (0..events).map(|number| Wire::failing(format!("e{number}"), fails(number)));
        // Sent again: at once, or behind all others.
        let again = (0..repeated).map(|number| Wire::failing(format!("e{}", number * 4), fails(number * 4)));
        let (at_once, behind): (Vec<_>, Vec<_>) = again.partition(|wire| wire.id.ends_with('8'));
        let mut sent: Vec<Wire> = first.collect();
        for (place, wire) in at_once.into_iter().enumerate() {
            sent.insert(place * 7, wire);
        }
        sent.extend(behind);
        assert_eq!(sent.len(), usize::try_from(B::MANY).unwrap());
        let mut waves = sent.chunks(B::WAITING);
        setup.publish(waves.next().unwrap().iter().cloned()).await;
        let consuming = setup.start().await;
        for wave in waves {
            setup.unsettled_below(B::WAITING / 4).await;
            setup.publish(wave.iter().cloned()).await;
        }
        timeout(PATIENCE, consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        setup.is_applied_once(events.into()).await;
    })
    .await;
}

/// For a broker with groups, each is a rebalance. [B46]
pub(super) async fn consumers_come_and_go_with_deliveries_in_flight<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        let first = setup.start().await;
        setup.publish(events(0..500)).await;
        setup.applied(100).await;
        let second = setup.start().await;
        sleep(B::JOINING).await;
        setup.publish(events(500..1_000)).await;
        setup.applied(400).await;
        first.stop().await;
        let third = setup.start().await;
        setup.publish(events(1_000..1_500)).await;
        setup.applied(1_500).await;
        timeout(PATIENCE, third.until_settled()).await.unwrap();
        tokio::join!(second.stop(), third.stop());
        setup.is_applied_once(1_500).await;
    })
    .await;
}

pub(super) async fn a_stop_gives_back_what_it_does_not_end<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        setup.publish(events(0..1_000)).await;
        let consuming = setup.start().await;
        setup.applied(100).await;
        consuming.stop().await;
        let applied = setup.db.number(EFFECTS).await;
        // Nothing that was applied is left, and nothing else is gone.
        let expected = 1_000 - u64::try_from(applied).unwrap();
        let left = setup.broker.unsettled().await;
        assert!(
            (expected..=expected + B::LEFT_BEHIND).contains(&left),
            "{left} messages are not settled, not {expected}"
        );
        sleep(Duration::from_millis(100)).await;
        assert_eq!(setup.db.number(EFFECTS).await, applied);
        let consuming = setup.start().await;
        timeout(PATIENCE, consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        setup.is_applied_once(1_000).await;
        for number in 0..1_000 {
            assert_eq!(setup.gate.runs(&format!("e{number}")), 1, "e{number}");
        }
    })
    .await;
}

pub(super) async fn what_is_stuck_is_rolled_back_and_given_back<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        setup.publish([Wire::waiting("stuck")]).await;
        let consuming = setup.consumer().grace(Duration::from_millis(50)).start().await.unwrap();
        setup.reached().await;
        consuming.stop().await;
        assert_eq!((setup.db.number(EFFECTS).await, setup.db.keys().await), (0, 0));
        assert_eq!(setup.broker.unsettled().await, 1);
        let consuming = setup.start().await;
        setup.reached().await;
        // What ends within the grace is settled.
        let stopping = consuming.stop();
        setup.gate.open.add_permits(1);
        stopping.await;
        setup.is_applied_once(1).await;
    })
    .await;
}

pub(super) async fn an_outage_in_the_middle_loses_and_doubles_nothing<B: TestBroker>() {
    Setup::<B>::test(B::LEASE, async |setup| {
        setup.publish(events(0..2_000)).await;
        let consuming = setup.start().await;
        for applied in [300, 900] {
            setup.applied(applied).await;
            setup.broker.outage(Duration::from_millis(700)).await;
        }
        // One that was in flight over the outage.
        setup.publish([Wire::waiting("in flight")]).await;
        setup.reached().await;
        setup.broker.outage(Duration::from_millis(200)).await;
        setup.gate.open.add_permits(10);
        setup.applied(2_001).await;
        setup.unsettled(0).await;
        consuming.stop().await;
        setup.is_applied_once(2_001).await;
    })
    .await;
}

/// [B47] One run, no second copy, an acknowledgement at the end.
pub(super) async fn a_handler_slower_than_the_lease_keeps_its_delivery<B: TestBroker>() {
    Setup::<B>::test(B::LEASE, async |setup| {
        let consuming = (setup.start().await, setup.start().await);
        setup.publish([Wire::waiting("slow")]).await;
        setup.reached().await;
        sleep(B::LEASE * 3).await;
        assert_eq!((setup.gate.runs("slow"), setup.broker.unsettled().await), (1, 1));
        setup.gate.open.add_permits(1);
        setup.unsettled(0).await;
        tokio::join!(consuming.0.stop(), consuming.1.stop());
        assert_eq!(setup.gate.runs("slow"), 1);
        setup.is_applied_once(1).await;
    })
    .await;
}

/// [B49] Bounded attempts, then the dead letters; what comes behind flows on.
pub(super) async fn what_cannot_be_handled_becomes_a_dead_letter<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        let huge = vec![b'x'; B::LARGEST];
        let bodies = [&b"{\"id\": "[..], b"", b"{\"id\": \"\xff\xfe\"}", &huge];
        let bodies: Vec<_> = bodies.into_iter().filter(|body| B::carries(body)).collect();
        setup.broker.publish(bodies.iter().copied().map(Incoming::new).collect()).await;
        setup.publish([Wire::failing("poison", 9), Wire::new(""), Wire::new("fine")]).await;
        let consuming = setup.start().await;
        setup.unsettled(0).await;
        consuming.stop().await;
        let mut dead = setup.broker.dead_letters().await;
        dead.sort();
        let reasons: Vec<_> = dead.iter().map(|(body, reason)| (body.len(), reason.as_str())).collect();
        assert_eq!(reasons.len(), bodies.len() + 2, "{reasons:?}");
        let reason = |body: &[u8]| {
            let found = dead.iter().find(|(dead, _)| dead == body);
            found.map(|(_, reason)| reason.as_str()).unwrap_or_else(|| panic!("{} bytes: {reasons:?}", body.len()))
        };
        for body in bodies {
            assert!(reason(body).contains("the message cannot be decoded"), "{reasons:?}");
        }
        let poison = reason(&Wire::failing("poison", 9).message().body);
        assert!(poison.starts_with("given up after 3 attempts; the last one: handler `"), "{poison}");
        assert!(poison.ends_with("run 3 of poison fails, as told"), "{poison}");
        assert!(reason(&Wire::new("").message().body).contains("the event has no usable key"), "{reasons:?}");
        assert_eq!((setup.gate.runs("poison"), setup.db.effects("fine").await), (3, 1));
        assert_eq!((setup.db.number(EFFECTS).await, setup.db.keys().await), (1, 1));
    })
    .await;
}

pub(super) async fn at_most_once_is_acknowledged_before_it_runs<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        let telling = Route::<Sqlite, <Sqlite as Consumes>::Tell>::with_state(Arc::clone(&setup.gate));
        let consuming = setup.bare(setup.broker.adapter()).route(telling).start().await.unwrap();
        setup.publish([Wire { fails: 9, ..Wire::waiting("ping") }]).await;
        setup.reached().await;
        setup.unsettled(0).await;
        setup.gate.open.add_permits(1);
        // A body that is no message was not acknowledged, for all that.
        setup.broker.publish(vec![Incoming::new("{}")]).await;
        setup.unsettled(0).await;
        consuming.stop().await;
        assert_eq!((setup.gate.runs("ping"), setup.broker.dead_letters().await.len()), (1, 1));
    })
    .await;
}

pub(super) async fn what_waits_is_told<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        setup.publish(events(0..20)).await;
        setup.publish([Wire::waiting("last")]).await;
        let consuming = setup.consumer().concurrency(1).start().await.unwrap();
        let caught_up = consuming.caught_up();
        setup.reached().await;
        assert!(!caught_up().await);
        setup.gate.open.add_permits(1);
        timeout(PATIENCE, consuming.until_settled()).await.unwrap();
        assert!(caught_up().await);
        consuming.stop().await;

        setup.publish(events(100..120)).await;
        let adapter = setup.broker.adapter();
        adapter.connect().await.unwrap();
        let lag = timeout(PATIENCE, async {
            loop {
                // A group that is not formed yet does not know.
                if let Some(lag) = adapter.lag().await.unwrap().filter(|lag| lag.messages > 0) {
                    break lag;
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        assert_eq!(lag.await.unwrap().messages, 20);
        adapter.close().await;
    })
    .await;
}

pub(super) async fn what_is_not_there_is_said_at_the_start<B: TestBroker>() {
    Setup::<B>::test(LONG, async |setup| {
        let start = async |adapter: B::Adapter| {
            let source = adapter.source();
            let started = timeout(Duration::from_secs(30), setup.bare(adapter).route(setup.route()).start());
            let error = started.await.expect("it must not wait for ever").unwrap_err();
            assert!(error.to_string().contains(&source) && error.to_string().contains(B::Adapter::BROKER), "{error}");
            error.kind()
        };
        assert_eq!(start(setup.broker.nowhere()).await, ErrorKind::BrokerUnavailable);
        if let Some(unknown) = setup.broker.unknown() {
            assert_eq!(start(unknown).await, ErrorKind::BrokerRefused);
        }
    })
    .await;
}
