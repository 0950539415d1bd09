//! Members that come, go, hang and lose their partitions with records in flight. [B46, B47]

use std::time::Duration;

use idem_runtime::{Adapter, Kafka, Settlement};
use tokio::time::timeout;

use super::super::TestBroker;
use super::cluster::{PARTITIONS, Topics};
use super::{bodies, take, until};

/// One record in each partition.
async fn one_each() -> Topics {
    let topics = Topics::shared().await;
    for partition in 0..PARTITIONS {
        topics.send(None, partition.to_string().as_bytes(), Some(partition)).await;
    }
    topics
}

fn ack() -> Settlement {
    Settlement::Ack
}

async fn a_partition_waits_for_what_is_in_flight(strategy: &str) {
    let topics = one_each().await;
    let member = || topics.kafka().set("partition.assignment.strategy", strategy).hand_over(Duration::from_secs(20));
    let (first, second) = (member(), member());
    first.connect().await.unwrap();
    let taken = take(&first, 4).await;
    second.connect().await.unwrap();
    // The second one gets nothing while the first one works.
    assert!(timeout(Duration::from_secs(4), take(&second, 1)).await.is_err());
    for record in &taken {
        first.settle(record, &ack()).await.unwrap();
    }
    until(async || topics.committed() == [1, 1, 1, 1]).await;
    // All were settled by the first, and each has two partitions now.
    for partition in 0..PARTITIONS {
        topics.send(None, b"new", Some(partition)).await;
    }
    let taken = tokio::join!(take(&first, 2), take(&second, 2));
    assert_eq!((bodies(&taken.0), bodies(&taken.1)), (vec!["new"; 2], vec!["new"; 2]));
    tokio::join!(first.close(), second.close());
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cooperative_a_partition_that_leaves_waits_for_what_is_in_flight() {
    a_partition_waits_for_what_is_in_flight("cooperative-sticky").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eager_a_partition_that_leaves_waits_for_what_is_in_flight() {
    a_partition_waits_for_what_is_in_flight("range").await;
}

async fn what_was_not_settled_in_time_is_stale(strategy: &str) {
    let topics = one_each().await;
    let member = || topics.kafka().set("partition.assignment.strategy", strategy).hand_over(Duration::from_millis(200));
    let (first, second) = (member(), member());
    first.connect().await.unwrap();
    let taken = take(&first, 4).await;
    second.connect().await.unwrap();
    let again = take(&second, 2).await;
    let gone = |body: &[u8]| again.iter().any(|record| record.message.body == body);
    for record in taken.iter().filter(|record| gone(&record.message.body)) {
        let stale = first.settle(record, &ack()).await.unwrap_err();
        assert!(stale.to_string().contains("another member"), "{stale}");
        // Nor is it parked twice.
        let dead = Settlement::DeadLetter { reason: "late".to_owned() };
        first.settle(record, &dead).await.unwrap_err();
    }
    first.close().await;
    for record in &again {
        let partition: usize = std::str::from_utf8(&record.message.body).unwrap().parse().unwrap();
        assert_eq!(topics.committed()[partition], 0, "the first one committed what it had lost");
        second.settle(record, &ack()).await.unwrap();
    }
    second.close().await;
    assert!(topics.dead_letters().await.is_empty());
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cooperative_what_was_not_settled_in_time_is_stale() {
    what_was_not_settled_in_time_is_stale("cooperative-sticky").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eager_what_was_not_settled_in_time_is_stale() {
    what_was_not_settled_in_time_is_stale("range").await;
}

/// A process that hangs with records in its hands shows no sign of life, and loses its partitions.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_hangs_loses_its_partitions_and_one_that_says_it_works_keeps_them() {
    let topics = one_each().await;
    let member = || topics.kafka().set("max.poll.interval.ms", "6000");
    let (first, second) = (member(), member());
    let connected = first.connect().await.unwrap();
    assert_eq!(connected.lease, Some(Duration::from_secs(6)));
    let taken = take(&first, 4).await;
    let extending = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            first.extend(&taken[0].receipt).await.unwrap();
        }
    };
    extending.await;
    first.settle(&taken[0], &ack()).await.unwrap();
    until(async || topics.committed().iter().sum::<i64>() == 1).await;
    second.connect().await.unwrap();
    // From here on the first one says nothing.
    let again = take(&second, 3).await;
    assert_eq!(bodies(&again), bodies(&taken[1..]));
    // It wakes up, and may not know yet what it has lost; the broker is told nothing of it.
    for record in &taken[1..] {
        drop(first.settle(record, &ack()).await);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(topics.committed().iter().sum::<i64>(), 1);
    for record in &taken[1..] {
        let stale = first.settle(record, &ack()).await.unwrap_err();
        assert!(stale.to_string().contains("another member"), "{stale}");
    }
    tokio::join!(first.close(), second.close());
    assert_eq!(topics.committed().iter().sum::<i64>(), 1);
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_connects_anew_as_often_as_it_likes() {
    let topics = one_each().await;
    let kafka: Kafka = topics.kafka();
    let mut last = Vec::new();
    for _ in 0..3 {
        kafka.connect().await.unwrap();
        for record in &last {
            kafka.settle(record, &ack()).await.unwrap_err();
        }
        last = take(&kafka, 4).await;
        assert_eq!(bodies(&last), ["0", "1", "2", "3"]);
    }
    kafka.close().await;
    kafka.close().await;
    assert!(kafka.receive(1).await.is_err() && kafka.settle(&last[0], &ack()).await.is_err());
    assert_eq!(topics.unsettled().await, 4);
    topics.destroy().await;
}
