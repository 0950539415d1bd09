//! What only RabbitMQ does. [B48, B49]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_runtime::{
    Adapter, AdapterError, Connected, Consumer, Delivery, Engine, ErrorKind, Incoming, Lag, RabbitMq, RabbitMqReceipt,
    Retries, RetryPolicy, Route, Settlement,
};
use idem_tests::{Consumes, Db, Gate};
use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};

use super::super::TestBroker;
use super::{InRabbitMq, header, text};

pub(super) type Classic = InRabbitMq<false, false>;
type Quorum = InRabbitMq<true, false>;

pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const SKIPPED: &str = "rabbitmq";

/// The adapter, and how often it was connected.
pub(super) struct Counted(pub(super) RabbitMq, pub(super) Arc<AtomicU32>);

impl Adapter for Counted {
    type Receipt = RabbitMqReceipt;
    const BROKER: &'static str = RabbitMq::BROKER;
    const RETRIES: Retries = RabbitMq::RETRIES;

    fn source(&self) -> String {
        self.0.source()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.connect().await
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<RabbitMqReceipt>>, AdapterError> {
        self.0.receive(max).await
    }

    async fn settle(&self, delivery: &Delivery<RabbitMqReceipt>, how: &Settlement) -> Result<(), AdapterError> {
        self.0.settle(delivery, how).await
    }

    async fn extend(&self, receipt: &RabbitMqReceipt) -> Result<(), AdapterError> {
        self.0.extend(receipt).await
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        self.0.lag().await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

pub(super) async fn one(adapter: &RabbitMq) -> Delivery<RabbitMqReceipt> {
    let mut deliveries = timeout(PATIENCE, adapter.receive(1)).await.unwrap().unwrap();
    assert_eq!(deliveries.len(), 1);
    deliveries.remove(0)
}

pub(super) async fn ack(adapter: &RabbitMq, delivery: &Delivery<RabbitMqReceipt>) {
    adapter.settle(delivery, &Settlement::Ack).await.unwrap();
}

pub(super) async fn connected<const QUORUM: bool, const OWN: bool>(broker: &InRabbitMq<QUORUM, OWN>) -> RabbitMq {
    let adapter = broker.adapter();
    adapter.connect().await.unwrap();
    adapter
}

/// What a consumer says that does not start.
pub(super) async fn refusal(adapter: RabbitMq) -> (ErrorKind, String) {
    let mut refusal = None;
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(1).await).await.unwrap();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::<Gate>::default());
        let error = Consumer::new(&engine, adapter).route(route).start().await.unwrap_err();
        refusal = Some((error.kind(), error.to_string()));
    })
    .await;
    refusal.unwrap()
}

pub(super) fn message(body: &str) -> Incoming {
    Incoming::new(body)
}

/// A consumer at work on a queue, with a handler that does as its message says.
pub(super) async fn at_work(adapter: Counted, gate: &Arc<Gate>, db: &Db<Sqlite>) -> idem_runtime::Consuming {
    let engine = Engine::start(db.pool(4).await).await.unwrap();
    let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::clone(gate));
    let quick = RetryPolicy::default().attempts(3).first(Duration::from_millis(200));
    Consumer::new(&engine, adapter).retry(quick).route(route).start().await.unwrap()
}

pub(super) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what} did not come"));
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_its_reason_and_without_the_password() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    let url = &broker.node.url;
    let somebody = url.replace("guest:guest@", "guest:s3cret@");
    let elsewhere = url.replace("%2f", "no%20such%20place");
    let refused = [
        (RabbitMq::new("not a URL:s3cret@", "q"), "not one of AMQP's"),
        (RabbitMq::new("amqp://u:s3cret@[::1]:5672/%2f", "q"), "IPv6"),
        (RabbitMq::new("amqp://u:s3cret@h/%2f?heartbeat=s3cret", "q"), "not one of AMQP's"),
        (RabbitMq::new(&somebody, &broker.name), "refused the login"),
        (RabbitMq::new(&elsewhere, &broker.name), "refused the virtual host"),
        (RabbitMq::new(url, ""), "1 to 255 bytes"),
        (RabbitMq::new(url, "q".repeat(256)), "1 to 255 bytes"),
        (RabbitMq::new(url, &broker.name).dead_letter_queue(&broker.name), "would go to the queue itself"),
        (broker.unknown().unwrap(), "the queue is not there"),
    ];
    for (adapter, reason) in refused {
        assert!(!format!("{adapter:?}").contains("s3cret"));
        let (kind, error) = refusal(adapter).await;
        assert_eq!(kind, ErrorKind::BrokerRefused, "{error}");
        assert!(error.contains(reason) && !error.contains("s3cret"), "{error}");
    }
    broker.delete(&broker.name).await;
}

/// The client would go on without encryption, and say the password.
#[cfg(not(feature = "servers"))]
#[tokio::test]
async fn encryption_that_is_not_built_in_is_refused() {
    let (kind, error) = refusal(RabbitMq::new("amqps://u:s3cret@127.0.0.1:1/%2f", "q")).await;
    assert_eq!(kind, ErrorKind::BrokerRefused);
    assert!(error.contains("build idem-runtime with the feature `rabbitmq-tls`"), "{error}");
}

#[tokio::test]
async fn a_broker_that_is_frozen_is_not_waited_for_for_ever() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://guest:guest@{}/%2f", listener.local_addr().unwrap());
    let (kind, error) = timeout(Duration::from_secs(20), refusal(RabbitMq::new(url, "q"))).await.unwrap();
    assert_eq!(kind, ErrorKind::BrokerUnavailable);
    assert!(error.contains("did not answer within 10 seconds"), "{error}");
}

/// A tag means another message on another channel. [B48]
#[tokio::test]
async fn a_settlement_of_a_former_channel_is_stale_and_touches_nothing() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    broker.publish(vec![message("one"), message("two")]).await;
    let adapter = connected(&broker).await;
    let old = one(&adapter).await;
    adapter.connect().await.unwrap();
    let new = one(&adapter).await;
    for how in
        [Settlement::Ack, Settlement::Release { after: Duration::ZERO }, Settlement::DeadLetter { reason: "r".into() }]
    {
        let error = adapter.settle(&old, &how).await.unwrap_err();
        assert!(error.to_string().contains("has ended, and RabbitMQ delivers it again"), "{error}");
    }
    assert!(adapter.extend(&old.receipt).await.is_err());
    adapter.extend(&new.receipt).await.unwrap();
    assert_eq!((broker.unsettled().await, broker.parked().await.len()), (2, 0));
    assert_eq!((new.message.body.as_slice(), new.attempt), (&b"one"[..], 1));
    ack(&adapter, &new).await;
    ack(&adapter, &one(&adapter).await).await;
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 0);
    adapter.close().await;
    broker.destroy().await;
}

/// RabbitMQ would close the channel. [B48]
#[tokio::test]
async fn a_second_acknowledgement_is_stale_and_is_not_sent() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    broker.publish(vec![message("one"), message("two")]).await;
    let adapter = connected(&broker).await;
    let first = one(&adapter).await;
    let twice = tokio::join!(
        adapter.settle(&first, &Settlement::Ack),
        adapter.settle(&first, &Settlement::Release { after: Duration::ZERO })
    );
    assert!(twice.0.is_ok() && twice.1.is_err(), "{twice:?}");
    assert!(adapter.settle(&first, &Settlement::Ack).await.is_err());
    ack(&adapter, &one(&adapter).await).await;
    adapter.close().await;
    assert_eq!(broker.unsettled().await, 0);
    broker.destroy().await;
}

#[tokio::test]
async fn no_more_is_taken_than_was_asked_for() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    broker.publish((0..100).map(|number| message(&number.to_string())).collect()).await;
    let adapter = connected(&broker).await;
    let mut held = Vec::new();
    while held.len() < 5 {
        held.extend(adapter.receive(5 - held.len()).await.unwrap());
    }
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 100);
    // Dropped, it loses nothing.
    assert!(timeout(Duration::from_millis(300), adapter.receive(5)).await.is_err());
    let ready = broker.look(&broker.name).await.unwrap().message_count();
    assert_eq!(ready, 95);
    for delivery in &held {
        ack(&adapter, delivery).await;
    }
    while held.len() < 100 {
        let more = timeout(PATIENCE, adapter.receive(32)).await.unwrap().unwrap();
        for delivery in &more {
            ack(&adapter, delivery).await;
        }
        held.extend(more);
        let ready = u64::from(broker.look(&broker.name).await.unwrap().message_count());
        assert!(adapter.lag().await.unwrap().unwrap().messages - ready <= 32);
    }
    let bodies: std::collections::HashSet<_> = held.iter().map(|delivery| delivery.message.body.clone()).collect();
    assert_eq!(bodies.len(), 100);
    adapter.close().await;
    assert_eq!(broker.unsettled().await, 0);
    broker.destroy().await;
}

/// What is neither in the queue nor in this process's hands is on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_overlooked_while_it_is_on_its_way() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    let adapter = connected(&broker).await;
    let (_connection, channel) = broker.channel().await;
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    // It takes its time.
    let large = vec![b'x'; 8_000_000];
    for _ in 0..30 {
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        let published = channel.basic_publish("".into(), broker.name.as_str().into(), options, &large, properties);
        assert!(published.await.unwrap().await.unwrap().is_ack());
        // It is being delivered.
        assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 1);
        let delivery = one(&adapter).await;
        assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 1);
        ack(&adapter, &delivery).await;
        assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 0);
    }
    adapter.close().await;
    broker.destroy().await;
}

fn eventful() -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("tenant".into(), text("blue"));
    headers.insert("number".into(), AMQPValue::LongInt(7));
    headers.insert("x-delivery-count".into(), AMQPValue::LongLongInt(40));
    BasicProperties::default()
        .with_headers(headers)
        .with_message_id("m1".into())
        .with_content_type("application/json".into())
        .with_correlation_id("c1".into())
        .with_type("paid".into())
        .with_app_id("shop".into())
        .with_user_id("guest".into())
        .with_expiration("3600000".into())
        .with_timestamp(1_700_000_000)
        .with_priority(3)
}

#[tokio::test]
async fn headers_and_properties_are_seen_and_kept_with_the_dead_letter() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    let mut properties = eventful();
    let mut headers = properties.headers().clone().unwrap();
    // It came to this queue by the second address, and must not come back by it.
    headers.insert("CC".into(), AMQPValue::FieldArray(vec![text(&broker.name)].into()));
    properties = properties.with_headers(headers);
    broker.send([(b"body".to_vec(), properties)]).await;
    let adapter = connected(&broker).await;
    let delivery = one(&adapter).await;
    let names = [
        "app-id",
        "content-type",
        "correlation-id",
        "exchange",
        "message-id",
        "routing-key",
        "tenant",
        "type",
        "user-id",
    ];
    let values = ["shop", "application/json", "c1", "", "m1", &broker.name, "blue", "paid", "guest"];
    let expected: BTreeMap<_, _> =
        names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect();
    // The sender's own count is none.
    assert_eq!((delivery.message.headers.clone(), delivery.attempt), (expected, 1));
    let reason = "ä".repeat(100_000);
    adapter.settle(&delivery, &Settlement::DeadLetter { reason: reason.clone() }).await.unwrap();
    // To be seen again, it would have to come by then.
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 0);
    adapter.close().await;

    let parked = broker.parked().await;
    assert_eq!(parked.len(), 1);
    let (properties, kept) = (&parked[0].properties, |name| header(&parked[0].properties, name));
    assert_eq!(parked[0].data, b"body");
    assert!(reason.starts_with(&kept("x-idem-reason").unwrap()) && kept("x-idem-reason").unwrap().len() == 8_192);
    assert_eq!(kept("x-idem-queue").as_deref(), Some(broker.name.as_str()));
    assert_eq!((kept("tenant").as_deref(), kept("x-idem-expiration").as_deref()), (Some("blue"), Some("3600000")));
    assert_eq!(kept("x-idem-user-id").as_deref(), Some("guest"));
    let headers = properties.headers().as_ref().unwrap().inner();
    assert_eq!(headers.get("number"), Some(&AMQPValue::LongInt(7)));
    assert!(
        !headers.contains_key("x-delivery-count") && !headers.contains_key("CC") && headers.contains_key("x-idem-cc")
    );
    let original = eventful();
    assert_eq!(properties.message_id(), original.message_id());
    assert_eq!(properties.correlation_id(), original.correlation_id());
    assert_eq!((properties.kind(), properties.app_id()), (original.kind(), original.app_id()));
    assert_eq!((properties.timestamp(), properties.priority()), (original.timestamp(), original.priority()));
    assert_eq!((properties.expiration(), properties.delivery_mode()), (&None, &Some(2)));
    broker.destroy().await;
}

/// One frame holds all headers, and a longer one would end the connection, again and again. [B49]
#[tokio::test]
async fn headers_that_fill_their_frame_leave_less_room_for_the_reason() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    let adapter = connected(&broker).await;
    for (length, room) in [(120_000, 5_000), (130_500, 0)] {
        let mut headers = FieldTable::default();
        headers.insert("long".into(), text(&"x".repeat(length)));
        broker.send([(b"body".to_vec(), BasicProperties::default().with_headers(headers))]).await;
        let delivery = one(&adapter).await;
        let reason = "r".repeat(50_000);
        adapter.settle(&delivery, &Settlement::DeadLetter { reason }).await.unwrap();
        let dead = broker.dead_letters().await;
        assert!(dead.iter().any(|(_, reason)| reason.len() >= room), "{length}");
    }
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 0);
    adapter.close().await;
    broker.destroy().await;
}

/// A quorum queue counts, where no rollback undoes it.
#[tokio::test]
async fn a_quorum_queue_counts_the_attempts() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Quorum::create(PATIENCE).await;
    broker.send([(b"body".to_vec(), eventful())]).await;
    let adapter = connected(&broker).await;
    for attempt in 1..=3 {
        let delivery = one(&adapter).await;
        assert_eq!(delivery.attempt, attempt);
        adapter.settle(&delivery, &Settlement::Release { after: Duration::ZERO }).await.unwrap();
    }
    let delivery = one(&adapter).await;
    adapter.settle(&delivery, &Settlement::DeadLetter { reason: "r".into() }).await.unwrap();
    adapter.close().await;
    // Put back by hand, it begins anew.
    let parked = broker.parked().await;
    broker.send([(parked[0].data.clone(), parked[0].properties.clone())]).await;
    let adapter = connected(&broker).await;
    assert_eq!(one(&adapter).await.attempt, 1);
    adapter.close().await;
    broker.destroy().await;
}

/// [B49] Neither lost nor a hot loop, and parked once there is a place again.
#[tokio::test]
async fn a_dead_letter_without_a_place_is_kept_back_and_comes_again() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    broker.publish(vec![message("poison"), message("fine")]).await;
    let adapter = connected(&broker).await;
    broker.delete(&broker.dead()).await;
    let poison = one(&adapter).await;
    let dead = Settlement::DeadLetter { reason: "r".into() };
    let error = adapter.settle(&poison, &dead).await.unwrap_err();
    assert!(error.to_string().contains("is not there any more: create it"), "{error}");
    adapter.settle(&poison, &Settlement::Retry { after: Duration::from_secs(3) }).await.unwrap();
    // It counts for the prefetch, which is 1 here.
    let early = timeout(Duration::from_millis(400), adapter.receive(1)).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 2);
    assert_eq!(one(&adapter).await.message.body, b"poison");
    // With the next connection it is there again.
    adapter.connect().await.unwrap();
    let poison = one(&adapter).await;
    adapter.settle(&poison, &dead).await.unwrap();
    ack(&adapter, &one(&adapter).await).await;
    adapter.close().await;
    assert_eq!((broker.unsettled().await, broker.dead_letters().await), (0, vec![(b"poison".to_vec(), "r".into())]));
    broker.destroy().await;
}

/// What is kept back comes again at the end of the consumer, and nothing of it runs on.
#[tokio::test]
async fn the_end_gives_back_what_is_kept() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    broker.publish(vec![message("one")]).await;
    let adapter = connected(&broker).await;
    let delivery = one(&adapter).await;
    adapter.settle(&delivery, &Settlement::Retry { after: PATIENCE * 10 }).await.unwrap();
    adapter.close().await;
    assert!(adapter.receive(1).await.is_err() && adapter.lag().await.is_err());
    let next = connected(&broker).await;
    ack(&next, &one(&next).await).await;
    next.close().await;
    let gone = async || broker.look(&broker.name).await.unwrap().consumer_count() == 0;
    until("the end of the consumers", gone).await;
    broker.destroy().await;
}
