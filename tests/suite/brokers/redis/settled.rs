//! Deliveries, and what becomes of them, call by call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use idem_runtime::{Adapter, Consumer, Delivery, Engine, Incoming, RedisReceipt, RedisStream, Route, Settlement};
use idem_tests::{Consumes, Db, Gate, Wire};
use redis::AsyncCommands;
use redis::streams::{StreamInfoConsumersReply, StreamRangeReply};
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};

use super::super::TestBroker;
use super::{GROUP, Stream};

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(1);
const NOW: Duration = Duration::ZERO;

async fn connected(stream: &Stream<false>) -> RedisStream {
    let adapter = stream.adapter();
    adapter.connect().await.unwrap();
    adapter
}

async fn receive(adapter: &RedisStream) -> Delivery<RedisReceipt> {
    let receiving = async {
        loop {
            if let Some(delivery) = adapter.receive(1).await.unwrap().pop() {
                return delivery;
            }
        }
    };
    timeout(Duration::from_secs(20), receiving).await.expect("nothing comes")
}

/// Without the one of what was given back, which nobody removes.
async fn consumers(stream: &Stream<false>) -> Vec<String> {
    let reply: StreamInfoConsumersReply = stream.conn().await.xinfo_consumers(&stream.name, GROUP).await.unwrap();
    let names = reply.consumers.into_iter().map(|consumer| consumer.name);
    names.filter(|name| name != "idem:released").collect()
}

#[tokio::test]
async fn a_retry_counts_as_an_attempt_and_a_release_does_not() {
    let stream = Stream::<false>::create(LONG).await;
    stream.publish(vec![Incoming::new("x").with_header("trace", "7")]).await;
    let (one, two) = (connected(&stream).await, connected(&stream).await);
    let first = receive(&one).await;
    assert_eq!((first.attempt, first.message.header("trace")), (1, Some("7")));
    one.settle(&first, &Settlement::Release { after: NOW }).await.unwrap();
    let second = receive(&two).await;
    assert_eq!((second.attempt, &second.message), (1, &first.message));
    two.settle(&second, &Settlement::Retry { after: NOW }).await.unwrap();
    let third = receive(&two).await;
    assert_eq!(third.attempt, 2);
    two.settle(&third, &Settlement::Ack).await.unwrap();
    assert_eq!(stream.unsettled().await, 0);
    stream.destroy().await;
}

#[tokio::test]
async fn the_third_version_of_the_protocol_works_as_well() {
    let stream = Stream::<false>::create(LONG).await;
    stream.publish(vec![Incoming::new("x").with_header("trace", "7")]).await;
    let adapter = RedisStream::new(format!("{}/?protocol=resp3", stream.url), &stream.name, GROUP);
    adapter.connect().await.unwrap();
    let first = receive(&adapter).await;
    adapter.settle(&first, &Settlement::Retry { after: NOW }).await.unwrap();
    let second = receive(&adapter).await;
    assert_eq!(
        (first.message, second.attempt, second.message.header("trace")),
        (Incoming::new("x").with_header("trace", "7"), 2, Some("7"))
    );
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 1);
    adapter.settle(&second, &Settlement::DeadLetter { reason: "no".to_owned() }).await.unwrap();
    assert_eq!(stream.dead_letters().await.len(), 1);
    adapter.close().await;
    stream.destroy().await;
}

#[tokio::test]
async fn what_is_given_back_for_later_comes_later() {
    let stream = Stream::<false>::create(SHORT).await;
    stream.publish(vec![Incoming::new("x")]).await;
    let (one, two) = (connected(&stream).await, connected(&stream).await);
    let first = receive(&one).await;
    one.settle(&first, &Settlement::Retry { after: Duration::from_millis(900) }).await.unwrap();
    assert!(timeout(Duration::from_millis(500), receive(&two)).await.is_err());
    assert_eq!(receive(&two).await.attempt, 2);
    stream.destroy().await;
}

/// Also where the later delivery went to the same consumer.
#[tokio::test]
async fn what_was_handed_out_again_is_not_settled_by_its_first_receiver() {
    let stream = Stream::<false>::create(SHORT).await;
    stream.publish(vec![Incoming::new("x")]).await;
    let (one, two) = (connected(&stream).await, connected(&stream).await);
    let first = receive(&one).await;
    let second = receive(&one).await;
    let third = receive(&two).await;
    assert_eq!([&first, &second, &third].map(|delivery| delivery.attempt), [1, 2, 3]);
    for late in [&first, &second] {
        for how in [
            Settlement::Ack,
            Settlement::Retry { after: NOW },
            Settlement::Release { after: NOW },
            Settlement::DeadLetter { reason: "late".to_owned() },
        ] {
            let error = one.settle(late, &how).await.unwrap_err().to_string();
            assert!(error.contains("not pending for this delivery any more"), "{error}");
        }
        one.extend(&late.receipt).await.unwrap_err();
    }
    assert_eq!((stream.unsettled().await, stream.dead_letters().await.len()), (1, 0));
    two.settle(&third, &Settlement::Ack).await.unwrap();
    two.settle(&third, &Settlement::Ack).await.unwrap_err();
    assert_eq!(stream.unsettled().await, 0);
    stream.destroy().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_loses_nothing_and_a_close_gives_back() {
    let stream = Stream::<false>::create(LONG).await;
    let (one, two) = (connected(&stream).await, connected(&stream).await);
    stream.publish(["a", "b", "c"].map(Incoming::new).to_vec()).await;
    assert!(one.receive(9).now_or_never().is_none());
    let handed_out = receive(&one).await;
    assert_eq!(handed_out.message.body, b"a");
    // What comes while nobody asks is read by the call that was dropped.
    assert!(timeout(Duration::from_millis(50), two.receive(9)).await.is_err());
    stream.publish(vec![Incoming::new("d")]).await;
    tokio::join!(one.close(), two.close());

    let three = connected(&stream).await;
    let mut rest = [receive(&three).await, receive(&three).await, receive(&three).await];
    rest.sort_by_key(|delivery| delivery.message.body.clone());
    let rest = rest.map(|delivery| (delivery.message.body, delivery.attempt));
    assert_eq!(rest, [b"b", b"c", b"d"].map(|body| (body.to_vec(), 1)));
    // What was handed out is its receiver's.
    assert_eq!(stream.group().await.0, 4);
    stream.destroy().await;
}

#[tokio::test]
async fn a_consumer_leaves_the_group_only_with_empty_hands() {
    let stream = Stream::<false>::create(LONG).await;
    stream.publish(vec![Incoming::new("x")]).await;
    let (one, two) = (connected(&stream).await, connected(&stream).await);
    let held = receive(&one).await;
    assert_eq!(consumers(&stream).await.len(), 2);
    tokio::join!(one.close(), two.close());
    assert_eq!((consumers(&stream).await.len(), stream.unsettled().await), (1, 1));
    one.receive(1).await.unwrap_err();
    one.connect().await.unwrap();
    one.settle(&held, &Settlement::Ack).await.unwrap();
    one.close().await;
    assert_eq!(consumers(&stream).await, [""; 0]);
    stream.destroy().await;
}

/// [B49] Not once more, and bytes that are no text are kept as they are.
#[tokio::test]
async fn an_entry_without_a_body_is_a_dead_letter_with_all_its_fields() {
    let stream = Stream::<false>::create(LONG).await;
    let wild: &[u8] = b"\xff\x00\xfe";
    let id = stream.add(&[("boby", b"{}"), ("wild", wild), ("idem-reason", b"earlier")]).await;
    let many: Vec<(String, &[u8])> = (0..5_000).map(|number| (format!("f{number}"), &b"v"[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    stream.add(&many).await;
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(1).await).await.unwrap();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::new(Gate::default()));
        let consuming = Consumer::new(&engine, stream.adapter()).route(route).start().await.unwrap();
        stream.publish(vec![Wire::new("fine").message()]).await;
        timeout(Duration::from_secs(20), consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        assert_eq!((db.effects("fine").await, stream.unsettled().await), (1, 0));
    })
    .await;
    let dead: StreamRangeReply = stream.conn().await.xrange_all(stream.dead()).await.unwrap();
    assert_eq!(dead.ids.len(), 2);
    let letter = dead.ids.iter().find(|letter| letter.get("idem-id") == Some(id.clone())).unwrap();
    let reason: String = letter.get("idem-reason").unwrap();
    assert!(reason.starts_with("the entry has no field `body`: "), "{reason}");
    assert_eq!((letter.get("wild"), letter.get("boby")), (Some(wild.to_vec()), Some("{}".to_owned())));
    let other = dead.ids.iter().find(|letter| letter.get("idem-id") != Some(id.clone())).unwrap();
    let fields: String = other.get("idem-fields").unwrap();
    let fields: Vec<String> = serde_json::from_str(&fields).unwrap();
    assert_eq!((fields.len(), fields[9_998].as_str()), (10_000, "f4999"));
    stream.destroy().await;
}

/// Without memory nothing can be added, and it waits for its dead letter.
#[tokio::test]
async fn a_dead_letter_that_has_no_room_stays_in_the_stream() {
    let stream = Stream::<true>::create(LONG).await;
    stream.publish(vec![Incoming::new("x")]).await;
    let adapter = stream.adapter();
    adapter.connect().await.unwrap();
    let delivery = receive(&adapter).await;
    stream.set("maxmemory", "1").await;
    let dead = Settlement::DeadLetter { reason: "no".to_owned() };
    let error = adapter.settle(&delivery, &dead).await.unwrap_err().to_string();
    assert!(error.contains("raise `maxmemory`"), "{error}");
    adapter.settle(&delivery, &Settlement::Retry { after: NOW }).await.unwrap();
    stream.set("maxmemory", "0").await;
    let again = receive(&adapter).await;
    adapter.settle(&again, &dead).await.unwrap();
    assert_eq!((stream.unsettled().await, stream.dead_letters().await), (0, vec![(b"x".to_vec(), "no".to_owned())]));
}

/// The connections are cut three times, with deliveries in flight.
#[tokio::test]
async fn connections_that_are_closed_are_made_anew() {
    let stream = Stream::<true>::create(SHORT).await;
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(4).await).await.unwrap();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::new(Gate::default()));
        stream.publish((0..600).map(|number| Wire::new(format!("e{number}")).message()).collect()).await;
        let consuming = Consumer::new(&engine, stream.adapter()).route(route).start().await.unwrap();
        for applied in [50, 200, 400] {
            while db.keys().await < applied {
                sleep(Duration::from_millis(5)).await;
            }
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]);
            let killed: u32 = kill.query_async(&mut stream.conn().await).await.unwrap();
            assert!(killed >= 1);
        }
        timeout(Duration::from_secs(60), async {
            while stream.unsettled().await > 0 {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await
        .unwrap();
        consuming.stop().await;
        assert_eq!((db.keys().await, db.number("SELECT count(*) FROM effect").await), (600, 600));
    })
    .await;
}
