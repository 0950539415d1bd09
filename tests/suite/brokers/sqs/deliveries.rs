//! Deliveries as the adapter gives and settles them.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName};
use idem_runtime::{Adapter, Consumer, Delivery, Incoming, RetryPolicy, Route, Settlement, Sqs, SqsReceipt};
use idem_tests::{Consumes, Db, Gate, Wire};
use sqlx::Sqlite;
use tokio::time::timeout;

use super::super::TestBroker;
use super::{Queue, text};

const LONG: Duration = Duration::from_secs(600);

const NOW: Settlement = Settlement::Release { after: Duration::ZERO };

async fn receive(adapter: &Sqs, number: usize) -> Vec<Delivery<SqsReceipt>> {
    let mut deliveries = Vec::new();
    while deliveries.len() < number {
        deliveries.extend(adapter.receive(number - deliveries.len()).await.unwrap());
    }
    deliveries
}

fn is_stale(settled: Result<(), idem_runtime::AdapterError>) -> bool {
    format!("{:?}", settled.unwrap_err()).contains("fault: Stale")
}

fn bodies(numbers: std::ops::Range<u32>) -> Vec<Incoming> {
    numbers.map(|number| Wire::new(format!("e{number}")).message()).collect()
}

/// [B47]
#[tokio::test]
async fn what_is_settled_after_it_was_given_to_another_is_stale() {
    let queue = Queue::<false>::create(Duration::from_secs(1)).await;
    let (slow, other) = (queue.adapter(), queue.adapter());
    slow.connect().await.unwrap();
    other.connect().await.unwrap();
    queue.publish(bodies(0..1)).await;
    let late = receive(&slow, 1).await.remove(0);
    let again = receive(&other, 1).await.remove(0);
    assert_eq!((late.attempt, again.attempt), (1, 2));
    assert!(is_stale(slow.extend(&late.receipt).await));
    assert!(is_stale(slow.settle(&late, &NOW).await));
    assert!(is_stale(slow.settle(&late, &Settlement::Ack).await));
    other.settle(&again, &Settlement::Ack).await.unwrap();
    assert_eq!(queue.unsettled().await, 0);
    slow.close().await;
    other.close().await;
    queue.destroy().await;
}

#[tokio::test]
async fn acknowledgements_are_sent_together_and_each_hears_of_its_own() {
    let queue = Queue::<false>::create(LONG).await;
    let adapter = queue.adapter();
    adapter.connect().await.unwrap();
    queue.publish(bodies(0..8)).await;
    let deliveries = receive(&adapter, 8).await;
    // One of them is deleted by somebody else, and settled again by us.
    adapter.settle(&deliveries[4], &Settlement::Ack).await.unwrap();
    let settled = deliveries.iter().map(|delivery| adapter.settle(delivery, &Settlement::Ack));
    let settled = futures_util::future::join_all(settled).await;
    for (place, settled) in settled.into_iter().enumerate() {
        if place == 4 {
            assert!(is_stale(settled));
        } else {
            settled.unwrap();
        }
    }
    assert_eq!(queue.unsettled().await, 0);
    adapter.close().await;
    queue.destroy().await;
}

#[tokio::test]
async fn what_comes_to_a_receiver_that_left_comes_with_the_next_call_or_is_given_back() {
    let queue = Queue::<false>::create(LONG).await;
    let adapter = queue.adapter();
    adapter.connect().await.unwrap();
    for is_closed in [false, true] {
        // It is asked for, and nobody waits for the answer any more.
        assert!(timeout(Duration::from_millis(200), adapter.receive(5)).await.is_err());
        queue.publish(bodies(0..3)).await;
        if is_closed {
            adapter.close().await;
            assert_eq!(queue.look(&queue.url).await.len(), 3);
        } else {
            for delivery in receive(&adapter, 3).await {
                adapter.settle(&delivery, &Settlement::Ack).await.unwrap();
            }
        }
    }
    // It can be used again.
    adapter.connect().await.unwrap();
    assert_eq!(receive(&adapter, 3).await.len(), 3);
    adapter.close().await;
    queue.destroy().await;
}

#[tokio::test]
async fn a_dead_letter_keeps_its_attributes_of_every_type() {
    let queue = Queue::<true>::create(LONG).await;
    let adapter = queue.adapter();
    adapter.connect().await.unwrap();
    let value = |kind: &str| MessageAttributeValue::builder().data_type(kind);
    let attributes = [
        ("text", text("t")),
        ("number", value("Number.cents").string_value("7").build().unwrap()),
        ("bytes", value("Binary").binary_value(Blob::new([0, 255])).build().unwrap()),
    ];
    queue.send("body", &attributes, "group", "1").await;
    let delivery = receive(&adapter, 1).await.remove(0);
    let headers = Incoming::new("body").with_header("text", "t").with_header("number", "7");
    assert_eq!((&delivery.message, delivery.order.is_some()), (&headers, true));
    let letter = Settlement::DeadLetter { reason: "bad \0 byte".to_owned() };
    adapter.settle(&delivery, &letter).await.unwrap();
    // Once more, as after a deletion that failed: it is not stored twice.
    assert!(is_stale(adapter.settle(&delivery, &letter).await));
    let dead = queue.look(&queue.dead).await;
    let [dead]: [Message; 1] = dead.try_into().unwrap();
    let kept = dead.message_attributes().unwrap();
    assert_eq!((dead.body(), kept.len()), (Some("body"), 4));
    for (name, value) in &attributes {
        assert_eq!(&kept[*name], value);
    }
    assert_eq!(kept["idem-reason"].string_value(), Some("bad \\u{0} byte"));
    assert_eq!(dead.attributes().unwrap()[&MessageSystemAttributeName::MessageGroupId], "group");
    assert_eq!(queue.unsettled().await, 0);
    adapter.close().await;
    queue.destroy().await;
}

/// A consumer with `tests.apply`.
fn consumer(engine: &idem_runtime::Engine<Sqlite>, adapter: Sqs) -> Consumer<Sqlite, Sqs> {
    let quick = RetryPolicy::default().first(Duration::from_millis(2));
    let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::<Gate>::default());
    Consumer::new(engine, adapter).retry(quick).route(route)
}

#[tokio::test]
async fn a_failed_message_is_not_overtaken_by_its_group() {
    Db::<Sqlite>::test(async |db| {
        let queue = Queue::<true>::create(LONG).await;
        for (number, fails) in [2, 0, 1, 0, 0].into_iter().enumerate() {
            let wire = Wire::failing(format!("e{number}"), fails);
            queue.send(&serde_json::to_string(&wire).unwrap(), &[], "group", &number.to_string()).await;
        }
        let consuming = consumer(&db.engine(4).await, queue.adapter()).start().await.unwrap();
        timeout(Duration::from_secs(60), consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        let in_order = "SELECT count(*) FROM effect WHERE note = 'e' || (rowid - 1)";
        assert_eq!((db.number(in_order).await, db.number("SELECT count(*) FROM effect").await), (5, 5));
        queue.destroy().await;
    })
    .await;
}

/// SQS itself drops what is sent again with the same id within five minutes, and nothing else.
#[tokio::test]
async fn a_fifo_queue_drops_a_senders_repetition_and_the_key_every_other() {
    Db::<Sqlite>::test(async |db| {
        let queue = Queue::<true>::create(LONG).await;
        let event = serde_json::to_string(&Wire::new("e1")).unwrap();
        for id in ["1", "1", "after the window"] {
            queue.send(&event, &[], "group", &id.replace(' ', "-")).await;
        }
        assert_eq!(queue.unsettled().await, 2);
        let consuming = consumer(&db.engine(4).await, queue.adapter()).start().await.unwrap();
        timeout(Duration::from_secs(60), consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        assert_eq!((db.effects("e1").await, db.keys().await, queue.unsettled().await), (1, 1, 0));
        queue.destroy().await;
    })
    .await;
}
