//! What a broker does only when it is told to fail: on librdkafka's own cluster, in this process.

use std::time::Duration;

use idem_runtime::{Adapter, Kafka, Settlement};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::time::{sleep, timeout};

use super::cluster::{PARTITIONS, Topics};
use super::{PATIENCE, bodies, take, until};

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> (Cluster, Topics) {
    let cluster = MockCluster::new(1).unwrap();
    let topics = Topics::of_mock(cluster.bootstrap_servers());
    cluster.create_topic(&topics.topic, PARTITIONS, 1).unwrap();
    cluster.create_topic(&topics.dead(), 1, 1).unwrap();
    (cluster, topics)
}

/// What `receive` ends with.
async fn failure(kafka: &Kafka) -> String {
    let receive = async {
        loop {
            if let Err(error) = kafka.receive(1).await {
                return format!("{error:?}");
            }
        }
    };
    timeout(PATIENCE, receive).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_made_again() {
    let (cluster, topics) = cluster();
    topics.send(None, b"one", Some(0)).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 1).await;
    let fails = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN; 3];
    cluster.request_errors(RDKafkaApiKey::OffsetCommit, &fails);
    kafka.settle(&taken[0], &Settlement::Ack).await.unwrap();
    until(async || topics.committed()[0] == 1).await;
    kafka.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_settled_while_the_broker_is_down_is_committed_when_it_is_back() {
    let (cluster, topics) = cluster();
    topics.send(None, b"one", Some(0)).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 1).await;
    cluster.broker_down(1).unwrap();
    kafka.settle(&taken[0], &Settlement::Ack).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    cluster.broker_up(1).unwrap();
    until(async || topics.committed()[0] == 1).await;
    topics.send(None, b"two", Some(0)).await;
    assert_eq!(bodies(&take(&kafka, 1).await), ["two"]);
    kafka.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_the_end_comes_all_the_same() {
    let (cluster, topics) = cluster();
    topics.send(None, b"one", Some(0)).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 1).await;
    cluster.broker_down(1).unwrap();
    kafka.settle(&taken[0], &Settlement::Ack).await.unwrap();
    timeout(Duration::from_secs(15), kafka.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_is_missing_is_said() {
    let (cluster, topics) = cluster();
    cluster.topic_error(&topics.topic, RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).unwrap();
    let text = format!("{:?}", topics.kafka().connect().await.unwrap_err());
    assert!(text.contains("Refused") && text.contains("allow `Read`"), "{text}");
    cluster.topic_error(&topics.topic, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).unwrap();

    // Before it joins.
    let denied = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED; 20];
    cluster.request_errors(RDKafkaApiKey::JoinGroup, &denied);
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let text = failure(&kafka).await;
    assert!(text.contains("Refused") && text.contains("the user may not use the group"), "{text}");
    kafka.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_is_not_taken_leaves_its_original_where_it_is() {
    let (cluster, topics) = cluster();
    topics.send(None, b"one", Some(0)).await;
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    let taken = take(&kafka, 1).await;
    cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED]);
    let dead = Settlement::DeadLetter { reason: "it cannot be".to_owned() };
    let text = format!("{:?}", kafka.settle(&taken[0], &dead).await.unwrap_err());
    assert!(text.contains("Refused") && text.contains("`Write` for dead letters"), "{text}");
    // As the consumer does then.
    kafka.settle(&taken[0], &Settlement::Retry { after: Duration::from_millis(300) }).await.unwrap();
    let again = take(&kafka, 1).await;
    assert_eq!((bodies(&again), topics.committed()[0]), (vec!["one"], 0));
    kafka.settle(&again[0], &dead).await.unwrap();
    until(async || topics.committed()[0] == 1).await;
    kafka.close().await;
}

/// Two processes with one `group.instance.id`: the older one is told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_name_another_one_took_says_so() {
    let (cluster, topics) = cluster();
    let kafka = topics.kafka().set("group.instance.id", "one");
    kafka.connect().await.unwrap();
    topics.send(None, b"one", Some(0)).await;
    let taken = take(&kafka, 1).await;
    cluster.request_errors(RDKafkaApiKey::Heartbeat, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID]);
    let text = failure(&kafka).await;
    assert!(text.contains("Refused") && text.contains("`group.instance.id`"), "{text}");
    drop(kafka.settle(&taken[0], &Settlement::Ack).await);
    kafka.close().await;
}

/// Records that came in one batch, of which the offset can pass none that is in flight.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_counted_in_records_and_comes_to_zero() {
    let (_cluster, topics) = cluster();
    let kafka = topics.kafka();
    kafka.connect().await.unwrap();
    topics.batch(5).await;
    assert_eq!(kafka.lag().await.unwrap().unwrap().messages, 5);
    let taken = take(&kafka, 5).await;
    for record in &taken[1..] {
        kafka.settle(record, &Settlement::Ack).await.unwrap();
    }
    assert_eq!(kafka.lag().await.unwrap().unwrap().messages, 5);
    kafka.settle(&taken[0], &Settlement::Ack).await.unwrap();
    until(async || kafka.lag().await.unwrap().unwrap().messages == 0).await;
    kafka.close().await;
}
