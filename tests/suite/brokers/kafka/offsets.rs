//! What is committed, and when. [B46]

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Adapter, Consumer, Engine, Incoming, Kafka, Route, Settlement};
use idem_tests::{Consumes, Db, Gate, Wire};
use rdkafka::Message;
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};

use super::super::TestBroker;
use super::cluster::{Topics, text};
use super::{PATIENCE, bodies, take, until};

/// Longer than the pace of commits.
const SETTLED: Duration = Duration::from_millis(1_200);

async fn five_records() -> Topics {
    let topics = Topics::shared().await;
    for number in 0..5 {
        let name = number.to_string();
        topics.send(Some(&name), name.as_bytes(), Some(0)).await;
    }
    topics
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_passes_nothing_that_is_in_flight_or_failed() {
    let topics = five_records().await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let mut taken = take(&kafka, 5).await;
    let held = taken.remove(1);
    let released = taken.remove(1);
    for record in &taken {
        kafka.settle(record, &Settlement::Ack).await.unwrap();
    }
    kafka.settle(&released, &Settlement::Release { after: Duration::from_millis(50) }).await.unwrap();
    until(async || topics.committed()[0] == 1).await;
    sleep(SETTLED).await;
    assert_eq!((topics.committed()[0], kafka.lag().await.unwrap().unwrap().messages), (1, 4));
    // What was released comes again, without the others.
    let again = take(&kafka, 1).await;
    assert_eq!(again[0].message.body, released.message.body);
    kafka.settle(&held, &Settlement::Ack).await.unwrap();
    until(async || topics.committed()[0] == 2).await;
    kafka.close().await;
    assert_eq!(topics.committed()[0], 2);

    // A restart gets it and everything behind it.
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 3).await;
    assert_eq!(bodies(&taken), ["2", "3", "4"]);
    for record in &taken {
        kafka.settle(record, &Settlement::Ack).await.unwrap();
    }
    kafka.close().await;
    assert_eq!(topics.committed()[0], 5);
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_key_or_of_a_partition_have_one_order() {
    let topics = five_records().await;
    topics.send(Some("0"), b"5", Some(0)).await;
    topics.send(None, b"6", Some(0)).await;
    let orders = async |kafka: Kafka| {
        kafka.connect().await.unwrap();
        let mut taken = take(&kafka, 4).await;
        // No more than four of one order are handed out.
        while taken.len() < 7 {
            kafka.settle(&taken[taken.len() - 4], &Settlement::Ack).await.unwrap();
            taken.extend(take(&kafka, 1).await);
        }
        kafka.close().await;
        taken.sort_by_key(|record| record.message.body.clone());
        taken.iter().map(|record| record.order).collect::<Vec<_>>()
    };
    let by_partition = orders(topics.kafka().ordered_by_partition()).await;
    assert!(by_partition[0].is_some() && by_partition.iter().all(|order| *order == by_partition[0]));
    topics.destroy().await;

    let topics = five_records().await;
    topics.send(Some("0"), b"5", Some(0)).await;
    topics.send(None, b"6", Some(0)).await;
    let by_key = orders(topics.kafka()).await;
    assert!(by_key[0].is_some() && by_key[0] == by_key[5] && by_key[0] != by_key[1]);
    assert_eq!(by_key[6], None);
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_that_comes_first_waits_for_those_before_it_and_for_the_broker() {
    let topics = five_records().await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 5).await;
    for record in &taken[2..4] {
        kafka.settle(record, &Settlement::Ack).await.unwrap();
    }
    let both = async { tokio::join!(kafka.acknowledge_first(&taken[4]), kafka.settle(&taken[0], &Settlement::Ack)) };
    // It is not told that the second is still in flight, and waits; then it comes again.
    let (first, settled) = timeout(PATIENCE, both).await.unwrap();
    settled.unwrap();
    assert!(first.unwrap_err().to_string().contains("a record before it"));
    let again = take(&kafka, 1).await;
    assert_eq!(again[0].message.body, b"4");
    let (first, settled) = tokio::join!(kafka.acknowledge_first(&again[0]), kafka.settle(&taken[1], &Settlement::Ack));
    first.unwrap();
    settled.unwrap();
    assert_eq!(topics.committed()[0], 5);
    kafka.close().await;
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_keeps_its_key_and_its_headers_and_says_why_and_whence() {
    let topics = Topics::shared().await;
    topics.send_with_headers("key", b"body", 2).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 1).await;
    assert_eq!(taken[0].message.header("trace"), Some("abc"));
    kafka.settle(&taken[0], &Settlement::DeadLetter { reason: "it cannot be".to_owned() }).await.unwrap();
    let dead = topics.read(&topics.dead());
    let [dead] = &dead[..] else { panic!("{dead:?}") };
    assert_eq!((dead.key(), dead.payload()), (Some(&b"key"[..]), Some(&b"body"[..])));
    let headers = ["trace", "idem-reason", "idem-topic", "idem-partition", "idem-offset"];
    let expected = ["abc", "it cannot be", &topics.topic, "2", "0"];
    assert_eq!(headers.map(|name| text(dead, name).unwrap()), expected);
    assert_eq!(Topics::binary(dead), Some(vec![0xff, 0x00]));
    kafka.close().await;
    assert_eq!(topics.committed()[2], 1);
    topics.destroy().await;
}

/// Far more than fits at once, with a handler that does not end: partitions are paused, and go on.
#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_no_room_for_waits_at_the_broker_and_comes() {
    let topics = Topics::shared().await;
    let messages = (0..600).map(|number| Incoming::new(number.to_string()));
    topics.publish(messages.collect()).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let mut taken = take(&kafka, 1).await;
    // Long enough for a pause of each partition.
    sleep(Duration::from_secs(4)).await;
    taken.extend(take(&kafka, 599).await);
    let mut numbers: Vec<u32> = bodies(&taken).iter().map(|body| body.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..600));
    for record in &taken {
        kafka.settle(record, &Settlement::Ack).await.unwrap();
    }
    until(async || topics.unsettled().await == 0).await;
    kafka.close().await;
    topics.destroy().await;
}

/// What the loop asks for before it runs a handler that may not run twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_at_most_once_handler_does_not_run_while_a_crash_would_deliver_its_record_again() {
    let topics = Topics::shared().await;
    for wire in [Wire::waiting("held"), Wire::new("ping")] {
        topics.send(Some(&wire.id), &wire.message().body, Some(0)).await;
    }
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(4).await).await.unwrap();
        let gate = Arc::<Gate>::default();
        let is_ping = |message: &Incoming| message.body.windows(4).any(|part| part == b"ping");
        let tell = Route::<Sqlite, <Sqlite as Consumes>::Tell>::with_state(Arc::clone(&gate)).when(is_ping);
        let apply = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::clone(&gate))
            .when(move |message| !is_ping(message));
        let consuming = Consumer::new(&engine, topics.kafka()).route(tell).route(apply).start().await.unwrap();
        timeout(PATIENCE, gate.reached.acquire()).await.unwrap().unwrap().forget();
        sleep(Duration::from_secs(1)).await;
        assert_eq!((gate.runs("ping"), topics.committed()[0]), (0, 0));
        gate.open.add_permits(1);
        until(async || gate.runs("ping") == 1).await;
        assert_eq!(topics.committed()[0], 2);
        consuming.stop().await;
        assert_eq!(gate.runs("ping"), 1);
    })
    .await;
    topics.destroy().await;
}

/// The mark at the end of a transaction has an offset, and is no record.
#[tokio::test(flavor = "multi_thread")]
async fn the_marks_of_transactions_are_passed_over() {
    let topics = Topics::shared().await;
    topics.send_in_a_transaction(b"one", 0).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 1).await;
    sleep(SETTLED).await;
    assert_eq!(kafka.lag().await.unwrap().unwrap().messages, 2);
    kafka.settle(&taken[0], &Settlement::Ack).await.unwrap();
    until(async || kafka.lag().await.unwrap().unwrap().messages == 0).await;
    assert_eq!(topics.committed()[0], 2);
    kafka.close().await;
    topics.destroy().await;
}
