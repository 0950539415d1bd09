//! What is refused before anything is consumed, and what the broker's settings say.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Config, pull};
use async_nats::jetstream::stream;
use idem_runtime::{Adapter, Consumer, Engine, ErrorKind, NatsJetStream, Route};
use idem_tests::{Consumes, Db, Logs, without_server};
use sqlx::Sqlite;
use tracing::Level;

use super::super::TestBroker;
use super::{CONSUMER, InNats, Server};

const WAIT: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(86_400);

/// What `connect` says, in the form for developers, which has the fault and its cause.
async fn refusal(adapter: &NatsJetStream) -> String {
    let error = adapter.connect().await.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("fault: Refused"), "{text}");
    text
}

#[tokio::test]
async fn what_would_lose_or_settle_too_early_is_refused_with_its_reason() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(WAIT).await;
    let good =
        || Config { durable_name: Some(CONSUMER.to_owned()), ack_policy: AckPolicy::Explicit, ..Config::default() };
    let pushing = || Config { deliver_subject: Some("somewhere".to_owned()), ..good() };
    let bad = [
        (Config { ack_policy: AckPolicy::None, ..pushing() }, "when it is delivered, before its effect is committed"),
        (Config { ack_policy: AckPolicy::None, ..good() }, "when it is delivered, before its effect is committed"),
        (Config { ack_policy: AckPolicy::All, ..good() }, "would settle the messages before it as well"),
        (pushing(), "make a pull consumer"),
        (Config { max_deliver: 20, ..good() }, "deliver a message no more, in silence; set it to -1"),
        (
            Config { max_deliver: 20, backoff: vec![WAIT], ..good() },
            "at other times than `ack_wait` and `RetryPolicy` say",
        ),
        (Config { inactive_threshold: DAY, ..good() }, "forgets what is done"),
        (Config { headers_only: true, ..good() }, "its messages have no bodies"),
    ];
    for (config, reason) in bad {
        broker.delete_consumer().await;
        broker.jetstream.create_consumer_on_stream(config, &broker.stream).await.unwrap();
        let text = refusal(&broker.adapter()).await;
        assert!(text.contains(reason), "{text}");
    }
    broker.destroy().await;
}

#[tokio::test]
async fn a_consumer_that_is_not_there_is_created_if_that_is_wanted() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(WAIT).await;
    broker.delete_consumer().await;
    let text = refusal(&broker.adapter()).await;
    assert!(text.contains("the durable consumer does not exist; call `create_consumer`"), "{text}");
    let adapter = broker.adapter().create_consumer();
    assert_eq!(adapter.connect().await.unwrap().lease, Some(WAIT));
    adapter.close().await;
    let config = broker.info().await.config;
    assert_eq!((config.ack_policy, config.max_deliver), (AckPolicy::Explicit, -1));
    for (stream, consumer) in [("two words", CONSUMER), ("a.b", CONSUMER), (&broker.stream, ""), (&broker.stream, "a*")]
    {
        let text = refusal(&NatsJetStream::new(&broker.url, stream, consumer)).await;
        assert!(text.contains("name is none"), "{text}");
    }
    broker.destroy().await;
}

#[tokio::test]
async fn dead_letters_need_another_stream_that_says_when_it_has_them() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(WAIT).await;
    let text = refusal(&broker.adapter().dead_letter_subject(broker.subject())).await;
    assert!(text.contains("which the consumed stream takes itself: they would come back"), "{text}");
    let text = refusal(&broker.adapter().dead_letter_subject("two words")).await;
    assert!(text.contains("the subject of the dead letters is none"), "{text}");
    let (name, subject) = (format!("{}_mute", broker.stream), format!("{}.mute", broker.stream));
    let mute =
        stream::Config { name: name.clone(), subjects: vec![subject.clone()], no_ack: true, ..Default::default() };
    broker.jetstream.create_stream(mute).await.unwrap();
    let text = refusal(&broker.adapter().dead_letter_subject(subject)).await;
    assert!(text.contains("`no_ack`"), "{text}");
    broker.jetstream.delete_stream(name).await.unwrap();
    broker.destroy().await;
}

/// The server tells of a missing permission beside the call that lacks it, which would wait for ever.
#[tokio::test]
async fn a_missing_permission_is_refused_by_name() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let denied = [
        ("info", "$JS.API.STREAM.INFO.>"),
        ("consumer", "$JS.API.CONSUMER.INFO.>"),
        ("names", "$JS.API.STREAM.NAMES"),
        ("create", "$JS.API.STREAM.CREATE.>"),
        ("next", "$JS.API.CONSUMER.MSG.NEXT.>"),
        ("ack", "$JS.ACK.>"),
    ];
    let user = |(name, subject): &(&str, &str)| {
        format!("{{ user: {name}, password: secret, permissions: {{ publish: {{ deny: \"{subject}\" }} }} }}\n")
    };
    let users: String = denied.iter().map(user).collect();
    let deaf = "{ user: deaf, password: secret, permissions: { subscribe: { deny: \"_INBOX.>\" } } }";
    let users = format!("authorization {{ users: [ {{ user: all, password: secret }}\n{users}\n{deaf} ] }}");
    let server = Server::start(&users).await;
    let url = |user: &str| server.url().replace("nats://", &format!("nats://{user}:secret@"));
    let options = async_nats::ConnectOptions::with_user_and_password("all".into(), "secret".into());
    let jetstream = async_nats::jetstream::new(options.connect(server.url()).await.unwrap());
    let stream =
        stream::Config { name: "EVENTS".to_owned(), subjects: vec!["events".to_owned()], ..Default::default() };
    let consumer = pull::Config { durable_name: Some(CONSUMER.to_owned()), ..Default::default() };
    jetstream.create_stream(stream).await.unwrap().create_consumer(consumer).await.unwrap();

    let adapter = |user| NatsJetStream::new(url(user), "EVENTS", CONSUMER);
    for (name, subject) in denied {
        let text = refusal(&adapter(name)).await;
        let subject = subject.trim_end_matches('>');
        assert!(text.contains("Permissions Violation for Publish to") && text.contains(subject), "{name}: {text}");
        if name == "create" {
            assert!(text.contains("create a stream that takes it"), "{text}");
            // From here on it is there.
            let adapter = adapter("all");
            adapter.connect().await.unwrap();
            adapter.close().await;
        }
    }
    let text = refusal(&adapter("deaf")).await;
    assert!(text.contains("Permissions Violation for Subscription to"), "{text}");

    for wrong in [url("nobody"), url("all").replace("secret", "wrong-secret"), server.url()] {
        let adapter = NatsJetStream::new(wrong, "EVENTS", CONSUMER);
        let text = refusal(&adapter).await;
        assert!(text.contains("check the credentials") && !text.contains("secret"), "{text}");
        assert!(!format!("{adapter:?}").contains("secret"));
    }
    let text = refusal(&NatsJetStream::new("nats://all:secret@:none", "EVENTS", CONSUMER)).await;
    assert!(text.contains("a server's URL is none") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let server = Server::without_jetstream().await;
    let text = refusal(&NatsJetStream::new(server.url(), "EVENTS", CONSUMER)).await;
    assert!(text.contains("start the server with `-js`"), "{text}");
}

/// The handler keeps its keys for seven days and declares a redelivery of one.
#[tokio::test]
async fn the_age_of_the_stream_is_the_redelivery_horizon() {
    if without_server(InNats::SERVICE) {
        return;
    }
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(1).await).await.unwrap();
        let broker = InNats::create(WAIT).await;
        let consumer = || {
            let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Default::default());
            Consumer::new(&engine, broker.adapter()).route(route)
        };
        let (logs, _guard) = Logs::capture();
        let warnings =
            || logs.up_to(Level::WARN).iter().filter(|line| line.contains("delivers again for longer")).count();
        // Without an age, what is there may come whenever it likes: the stream's size is the application's to watch.
        for (age, is_too_long) in [(Duration::ZERO, false), (DAY, false), (2 * DAY, true), (8 * DAY, true)] {
            let config = stream::Config {
                name: broker.stream.clone(),
                subjects: vec![broker.subject()],
                max_age: age,
                ..Default::default()
            };
            broker.jetstream.update_stream(config).await.unwrap();
            let before = warnings();
            consumer().start().await.unwrap().stop().await;
            assert_eq!(warnings() - before, usize::from(is_too_long), "{age:?}");
            match consumer().strict().start().await {
                Ok(consuming) => {
                    assert!(!is_too_long, "{age:?}");
                    consuming.stop().await;
                }
                Err(error) => {
                    assert!(is_too_long && error.kind() == ErrorKind::BrokerRefused, "{age:?}: {error}");
                    assert!(error.to_string().contains("by the stream's `max_age`"), "{error}");
                }
            }
        }
        broker.destroy().await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_makes_room_is_a_warning() {
    if without_server(InNats::SERVICE) {
        return;
    }
    let broker = InNats::create(WAIT).await;
    let (logs, _guard) = Logs::capture();
    let warned = || logs.up_to(Level::WARN).iter().any(|line| line.contains("nobody has handled yet"));
    for (discard, is_loss) in [(stream::DiscardPolicy::New, false), (stream::DiscardPolicy::Old, true)] {
        let config = stream::Config {
            name: broker.stream.clone(),
            subjects: vec![broker.subject()],
            max_messages: 100,
            discard,
            ..Default::default()
        };
        broker.jetstream.update_stream(config).await.unwrap();
        let adapter = broker.adapter();
        adapter.connect().await.unwrap();
        adapter.close().await;
        assert_eq!(warned(), is_loss);
    }
    broker.destroy().await;
}
