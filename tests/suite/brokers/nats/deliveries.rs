//! Deliveries that are late, lost, given back, parked.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream;
use idem_runtime::{
    Adapter, Consumer, Delivery, Engine, Incoming, NatsJetStream, NatsReceipt, RetryPolicy, Route, Settlement,
};
use idem_tests::{Consumes, Db, Gate, Wire, without_server};
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};

use super::super::TestBroker;
use super::InNats;

const LONG: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(60);
const EFFECTS: &str = "SELECT count(*) FROM effect";

async fn connected(broker: &InNats) -> NatsJetStream {
    let adapter = broker.adapter();
    adapter.connect().await.unwrap();
    adapter
}

/// The next delivery, which must come.
async fn next(adapter: &NatsJetStream) -> Delivery<NatsReceipt> {
    let coming = async {
        loop {
            let mut came = adapter.receive(1).await.unwrap();
            assert!(came.len() <= 1);
            if let Some(delivery) = came.pop() {
                return delivery;
            }
        }
    };
    timeout(PATIENCE, coming).await.expect("it comes")
}

fn fault(error: &idem_runtime::AdapterError) -> String {
    format!("{error:?}")
}

#[tokio::test]
async fn a_release_does_not_count_and_a_retry_does() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(LONG).await;
    let adapter = connected(&broker).await;
    broker.publish(vec![Incoming::new("a").with_header("Trace", "t1")]).await;
    let first = next(&adapter).await;
    assert_eq!((first.attempt, first.message.header("Trace")), (1, Some("t1")));
    assert_eq!(first.message.header("Nats-Subject"), Some(broker.subject().as_str()));
    let release = Settlement::Release { after: Duration::ZERO };
    adapter.settle(&first, &release).await.unwrap();
    let second = next(&adapter).await;
    assert_eq!(second.attempt, 1);
    let after = Duration::from_millis(300);
    let began = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    adapter.settle(&second, &Settlement::Retry { after }).await.unwrap();
    let third = next(&adapter).await;
    assert!(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() - began >= after);
    assert_eq!(third.attempt, 2);
    adapter.settle(&third, &release).await.unwrap();
    assert_eq!(next(&adapter).await.attempt, 2);
    // Another process knows the server's count alone.
    adapter.settle(&third, &release).await.unwrap();
    adapter.close().await;
    let other = connected(&broker).await;
    assert_eq!(next(&other).await.attempt, 5);
    other.close().await;
    broker.destroy().await;
}

/// The server takes it for the message, whichever delivery it was of; it says so after the commit of an effect that the
/// later delivery finds.
#[tokio::test]
async fn an_acknowledgement_that_comes_late_settles_the_message() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(InNats::LEASE).await;
    let adapter = connected(&broker).await;
    broker.publish(vec![Incoming::new("a")]).await;
    let late = next(&adapter).await;
    let again = next(&adapter).await;
    assert_eq!((late.attempt, again.attempt), (1, 2));
    adapter.settle(&late, &Settlement::Ack).await.unwrap();
    assert_eq!(broker.unsettled().await, 0);
    // And what is said of it afterwards changes nothing.
    adapter.settle(&again, &Settlement::Retry { after: Duration::ZERO }).await.unwrap();
    adapter.settle(&again, &Settlement::Ack).await.unwrap();
    assert_eq!(broker.unsettled().await, 0);
    adapter.close().await;
}

/// Its acknowledgement would settle an unread message that has the same number.
#[tokio::test]
async fn a_delivery_of_a_stream_that_was_made_anew_is_stale() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(LONG).await;
    let adapter = connected(&broker).await;
    broker.publish(vec![Incoming::new("old")]).await;
    let old = next(&adapter).await;
    broker.jetstream.delete_stream(&broker.stream).await.unwrap();
    broker.create_stream(stream::Config::default()).await;
    broker.create_consumer(pull::Config::default()).await;
    broker.publish(vec![Incoming::new("new")]).await;
    adapter.connect().await.unwrap();
    let new = next(&adapter).await;
    assert_eq!(new.message.body, b"new");
    for settlement in [Settlement::Ack, Settlement::DeadLetter { reason: "for the test".to_owned() }] {
        let error = adapter.settle(&old, &settlement).await.unwrap_err();
        assert!(fault(&error).contains("fault: Stale"), "{error:?}");
    }
    assert!(fault(&adapter.extend(&old.receipt).await.unwrap_err()).contains("fault: Stale"));
    assert_eq!((broker.unsettled().await, broker.dead_letters().await.len()), (1, 0));
    adapter.close().await;
    broker.destroy().await;
}

#[tokio::test]
async fn what_came_while_nobody_waited_comes_with_the_next_call_or_is_given_back() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(LONG).await;
    let adapter = connected(&broker).await;
    // The request is with the server when the call is dropped.
    let cancelled = async || assert!(timeout(Duration::from_millis(100), adapter.receive(8)).await.is_err());
    cancelled().await;
    broker.publish(vec![Incoming::new("a"), Incoming::new("b")]).await;
    assert_eq!(next(&adapter).await.message.body, b"a");
    adapter.close().await;
    // `b` was on its way to nobody, and `a` was received.
    let other = connected(&broker).await;
    let given_back = next(&other).await;
    assert_eq!((given_back.message.body.as_slice(), given_back.attempt), (b"b".as_slice(), 2));
    other.close().await;

    adapter.connect().await.unwrap();
    cancelled().await;
    broker.publish(vec![Incoming::new("c")]).await;
    adapter.close().await;
    adapter.connect().await.unwrap();
    assert_eq!(next(&adapter).await.message.body, b"c");
    adapter.close().await;
    broker.destroy().await;
}

#[tokio::test]
async fn no_task_outlives_the_end() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(LONG).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let adapter = connected(&broker).await;
    assert!(tasks() > before);
    adapter.connect().await.unwrap();
    adapter.close().await;
    adapter.close().await;
    let ended = async {
        while tasks() > before {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, ended).await.unwrap();
    assert!(fault(&adapter.receive(1).await.unwrap_err()).contains("fault: Unreachable"));
    broker.destroy().await;
}

/// The headers are kept, the server's own under another name, since it would act on them again. What was parked is parked
/// once, even if the acknowledgement after it was lost.
#[tokio::test]
async fn a_dead_letter_keeps_its_headers_and_is_stored_once() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(LONG).await;
    let adapter = connected(&broker).await;
    let message = Incoming::new("body")
        .with_header("Trace", "t1")
        .with_header("Nats-Msg-Id", "evt_1")
        .with_header("Nats-Expected-Stream", &broker.stream);
    broker.publish(vec![message]).await;
    let delivery = next(&adapter).await;
    let long = "é".repeat(10_000);
    let park = Settlement::DeadLetter { reason: format!("first line\r\nIdem-Forged: {long}") };
    adapter.settle(&delivery, &park).await.unwrap();
    adapter.settle(&delivery, &park).await.unwrap();
    assert_eq!(broker.unsettled().await, 0);
    let parked = broker.parked().await;
    assert_eq!((parked.len(), parked[0].payload.as_ref()), (1, b"body".as_slice()));
    let headers = parked[0].headers.as_ref().unwrap();
    let header = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
    assert_eq!(header("Trace"), Some("t1"));
    assert_eq!(header("idem-original-Msg-Id"), Some("evt_1"));
    assert_eq!(header("idem-original-Expected-Stream"), Some(broker.stream.as_str()));
    assert_eq!(header("idem-original-Subject"), Some(broker.subject().as_str()));
    assert_eq!(header("Idem-Forged"), None);
    let reason = header("idem-reason").unwrap();
    assert!(reason.starts_with("first line  Idem-Forged: é") && reason.chars().count() == 2_000, "{reason}");
    adapter.close().await;
    broker.destroy().await;
}

/// It is kept back instead, and stays in the stream.
#[tokio::test]
async fn a_dead_letter_that_no_stream_can_take_is_not_acknowledged() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(LONG).await;
    let adapter = connected(&broker).await;
    let park = Settlement::DeadLetter { reason: "for the test".to_owned() };
    // All that the server takes, without a byte for the reason.
    let limit = broker.jetstream.client().max_payload();
    broker.publish(vec![Incoming::new(vec![b'x'; limit - 12])]).await;
    let huge = next(&adapter).await;
    let error = adapter.settle(&huge, &park).await.unwrap_err();
    assert!(fault(&error).contains("fault: Refused") && fault(&error).contains("raise `max_payload`"), "{error:?}");
    adapter.settle(&huge, &Settlement::Ack).await.unwrap();

    broker.publish(vec![Incoming::new("small")]).await;
    let small = next(&adapter).await;
    broker.jetstream.delete_stream(format!("{}_dead", broker.stream)).await.unwrap();
    let error = adapter.settle(&small, &park).await.unwrap_err();
    assert!(fault(&error).contains("fault: Refused") && fault(&error).contains("no stream takes"), "{error:?}");
    assert_eq!(broker.unsettled().await, 1);
    // Once the adapter connects anew, there is a place again.
    adapter.connect().await.unwrap();
    adapter.settle(&small, &park).await.unwrap();
    assert_eq!((broker.unsettled().await, broker.dead_letters().await.len()), (0, 1));
    adapter.close().await;
    broker.destroy().await;
}

/// As a server does that swaps, or a network that drops packets: nothing is closed, and nothing answers.
#[tokio::test]
async fn a_server_that_hangs_is_noticed_by_every_call() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(InNats::LEASE).await;
    let adapter = connected(&broker).await;
    broker.publish(vec![Incoming::new("a")]).await;
    let delivery = next(&adapter).await;
    broker.server.as_ref().unwrap().signal("STOP").await;
    let longest = Duration::from_secs(12);
    let calls = async {
        let retry = Settlement::Retry { after: Duration::ZERO };
        tokio::join!(adapter.receive(1), adapter.settle(&delivery, &retry), adapter.extend(&delivery.receipt))
    };
    let (received, settled, extended) = timeout(longest, calls).await.unwrap();
    for error in [received.map(drop).unwrap_err(), settled.unwrap_err(), extended.unwrap_err()] {
        assert!(fault(&error).contains("fault: Unreachable"), "{error:?}");
    }
    let error = timeout(longest, broker.adapter().connect()).await.unwrap().unwrap_err();
    assert!(fault(&error).contains("fault: Unreachable"), "{error:?}");
    broker.server.as_ref().unwrap().signal("CONT").await;
    adapter.connect().await.unwrap();
    let again = next(&adapter).await;
    adapter.settle(&again, &Settlement::Ack).await.unwrap();
    adapter.close().await;
}

/// [B48, B49] The consumer says so, waits, and goes on.
#[tokio::test]
async fn a_consumer_that_is_deleted_under_way_is_used_again_when_it_is_made_again() {
    if without_server(InNats::SERVICE) {
        return;
    }
    Db::<Sqlite>::test(async |db| {
        let broker = InNats::create(LONG).await;
        let adapter = connected(&broker).await;
        let waiting = async { adapter.receive(1).await };
        let deleting = async {
            sleep(Duration::from_millis(100)).await;
            broker.delete_consumer().await;
        };
        let (received, ()) = tokio::join!(waiting, deleting);
        let error = received.unwrap_err();
        assert!(fault(&error).contains("Consumer Deleted"), "{error:?}");
        let error = adapter.receive(1).await.unwrap_err();
        // Some servers say that it is not there, others nothing.
        let is_plain =
            ["not there any more", "or the consumer was deleted"].iter().any(|text| fault(&error).contains(text));
        assert!(is_plain && fault(&error).contains("fault: Unreachable"), "{error:?}");
        let error = adapter.connect().await.unwrap_err();
        assert!(fault(&error).contains("the durable consumer does not exist"), "{error:?}");
        broker.create_consumer(pull::Config::default()).await;
        adapter.connect().await.unwrap();
        adapter.close().await;

        let engine = Engine::start(db.pool(2).await).await.unwrap();
        let gate = Arc::<Gate>::default();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::clone(&gate));
        let quick = RetryPolicy::default().first(Duration::from_millis(50));
        let consuming = Consumer::new(&engine, broker.adapter()).route(route).retry(quick).start().await.unwrap();
        broker.publish(vec![Wire::new("before").message()]).await;
        timeout(PATIENCE, consuming.until_settled()).await.unwrap();
        broker.delete_consumer().await;
        broker.publish(vec![Wire::new("meanwhile").message()]).await;
        broker.create_consumer(pull::Config::default()).await;
        let applied = async {
            while db.number(EFFECTS).await < 2 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, applied).await.unwrap();
        timeout(PATIENCE, consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        // The new consumer began with the oldest message: a duplicate.
        assert_eq!((db.number(EFFECTS).await, gate.runs("before")), (2, 1));
        broker.destroy().await;
    })
    .await;
}

/// `Nats-Msg-Id` covers what the publisher sends within the window, and nothing else. [B44]
#[tokio::test]
async fn what_is_published_again_after_the_window_is_a_second_delivery_and_one_effect() {
    if without_server(InNats::SERVICE) {
        return;
    }
    Db::<Sqlite>::test(async |db| {
        let broker = InNats::create(LONG).await;
        let window = Duration::from_millis(200);
        let config = stream::Config {
            name: broker.stream.clone(),
            subjects: vec![broker.subject()],
            duplicate_window: window,
            ..Default::default()
        };
        broker.jetstream.update_stream(config).await.unwrap();
        let send = async || {
            let message = Wire::new("evt_1").message().with_header("Nats-Msg-Id", "evt_1");
            broker.publish(vec![message]).await;
            broker.unsettled().await
        };
        assert_eq!((send().await, send().await), (1, 1));
        // The server forgets in its own time.
        let forgotten = async { while send().await < 2 {} };
        timeout(PATIENCE, forgotten).await.unwrap();
        let engine = Engine::start(db.pool(2).await).await.unwrap();
        let gate = Arc::<Gate>::default();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::clone(&gate));
        let consuming = Consumer::new(&engine, broker.adapter()).route(route).start().await.unwrap();
        timeout(PATIENCE, consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        assert_eq!((db.number(EFFECTS).await, gate.runs("evt_1")), (1, 1));
        broker.destroy().await;
    })
    .await;
}
