//! What does not start, and why.

use std::time::Duration;

use idem_runtime::{Adapter, Consumer, Engine, ErrorKind, Kafka, Route};
use idem_tests::{Consumes, Db, Gate};
use sqlx::Sqlite;
use std::sync::Arc;

use super::super::TestBroker;
use super::cluster::Topics;
use super::take;

async fn refusal(kafka: Kafka) -> String {
    format!("{:?}", kafka.connect().await.unwrap_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_acknowledge_early_or_skip_are_refused_with_the_reason() {
    let topics = Topics::shared().await;
    for (key, value, why) in [
        ("enable.auto.commit", "true", "whose effect is not committed"),
        ("enable.auto.offset.store", "true", "whose effect is not committed"),
        ("auto.offset.reset", "latest", "`Kafka::from_latest`"),
        ("acks", "1", "a dead letter must be stored"),
        ("group.id", "other", "the second argument"),
        ("no.such.setting", "1", "does not take the setting `no.such.setting`"),
    ] {
        let text = refusal(topics.kafka().set(key, value)).await;
        assert!(text.contains("Refused") && text.contains(why), "{text}");
    }
    topics.kafka().set("enable.auto.commit", "false").set("auto.offset.reset", "earliest").connect().await.unwrap();
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_for_dead_letters_must_exist_and_be_another_one() {
    let topics = Topics::shared().await;
    let missing = format!("{}.nowhere", topics.topic);
    let text = refusal(topics.kafka().dead_letter_topic(&missing)).await;
    assert!(text.contains("Refused") && text.contains(&missing) && text.contains("does not exist"), "{text}");
    let text = refusal(topics.kafka().dead_letter_topic(&topics.topic)).await;
    assert!(text.contains("would go back to it"), "{text}");
    topics.destroy().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_latest_skips_what_was_sent_before() {
    let topics = Topics::shared().await;
    topics.send(None, b"before", Some(0)).await;
    let kafka = topics.kafka().from_latest();
    kafka.connect().await.unwrap();
    // Until the group is formed everything is before.
    let sender = async {
        loop {
            topics.send(None, b"after", Some(0)).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let taken = tokio::select! {
        taken = take(&kafka, 1) => taken,
        () = sender => Vec::new(),
    };
    assert_eq!(taken[0].message.body, b"after");
    kafka.close().await;
    topics.destroy().await;
}

/// The handler declares a redelivery of one day and keeps its keys for seven.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_keeps_records_for_longer_than_declared_is_refused_where_that_is_strict() {
    let topics = Topics::shared().await;
    topics.make_with("horizon", &[("retention.ms", "864000000")]).await;
    Db::test(async |db: Arc<Db<Sqlite>>| {
        let engine = Engine::start(db.pool(2).await).await.unwrap();
        let start = async |is_strict: bool| {
            let kafka =
                Kafka::new(&topics.servers, &topics.group, topics.named("horizon")).dead_letter_topic(topics.dead());
            let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::<Gate>::default());
            let consumer = Consumer::new(&engine, kafka).route(route);
            if is_strict { consumer.strict() } else { consumer }.start().await
        };
        let error = start(true).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokerRefused);
        assert!(error.to_string().contains("864000 seconds, by `retention.ms=864000000` of the topic"), "{error}");
        start(false).await.unwrap().stop().await;
    })
    .await;
    topics.destroy().await;
}
