//! What is refused at the start, with what to do about it.

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Adapter, Consumer, Engine, ErrorKind, Incoming, RedisStream, RetryPolicy, Route};
use idem_tests::{Consumes, Db, Gate, Logs, Wire};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use sqlx::Sqlite;
use tokio::time::timeout;
use tracing::Level;

use super::super::TestBroker;
use super::own::Server;
use super::{GROUP, Stream};

const LEASE: Duration = Duration::from_secs(600);

/// As the documentation of `RedisStream` says.
const PERMISSIONS: &str =
    "+xreadgroup +xack +xpending +xclaim +xautoclaim +xrange +xadd +xlen +xinfo +evalsha +script|load +time";

/// Why a consumer does not start.
async fn refusal(adapter: RedisStream) -> String {
    let mut text = String::new();
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(1).await).await.unwrap();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::new(Gate::default()));
        let error = Consumer::new(&engine, adapter).route(route).start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokerRefused, "{error}");
        text = error.to_string();
    })
    .await;
    text
}

async fn is_refused(adapter: RedisStream, because: &str) {
    let text = refusal(adapter).await;
    assert!(text.contains(because), "{text}");
}

async fn set_user(conn: &mut MultiplexedConnection, rules: &str) {
    let mut set = redis::cmd("ACL");
    set.arg("SETUSER").arg("shop").arg("reset").arg("on").arg(">hush");
    let _: () = set.arg(rules.split_whitespace().collect::<Vec<_>>()).query_async(conn).await.unwrap();
}

#[tokio::test]
async fn a_server_that_may_delete_the_stream_is_refused() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]).await;
    let stream = Stream::<true>::on(Some(server), LEASE).await;
    is_refused(stream.adapter(), "`maxmemory-policy allkeys-lru` lets Redis delete the stream").await;
    stream.set("maxmemory-policy", "volatile-lru").await;
    stream.adapter().connect().await.unwrap();
}

#[tokio::test]
async fn a_stream_or_dead_letters_that_expire_are_refused() {
    let stream = Stream::<false>::create(LEASE).await;
    let mut conn = stream.conn().await;
    let _: () = conn.expire(&stream.name, 1_000).await.unwrap();
    is_refused(stream.adapter(), &format!("run `PERSIST {}`", stream.name)).await;
    let _: () = conn.persist(&stream.name).await.unwrap();
    let _: () = conn.xadd(stream.dead(), "*", &[("a", "b")]).await.unwrap();
    let _: () = conn.expire(stream.dead(), 1_000).await.unwrap();
    is_refused(stream.adapter(), &format!("run `PERSIST {}`", stream.dead())).await;
    stream.destroy().await;
}

#[tokio::test]
async fn keys_that_hold_something_else_are_refused() {
    let stream = Stream::<false>::create(LEASE).await;
    let mut conn = stream.conn().await;
    let _: () = conn.set(stream.dead(), "text").await.unwrap();
    is_refused(stream.adapter(), "holds something else than a stream").await;
    let _: () = conn.del(stream.dead()).await.unwrap();
    let _: () = conn.set(&stream.name, "text").await.unwrap();
    is_refused(stream.adapter(), "holds something else than a stream").await;
    is_refused(stream.adapter().create_group(), "holds something else than a stream").await;
    stream.destroy().await;
}

#[tokio::test]
async fn a_missing_group_is_refused_with_the_command_or_made() {
    let stream = Stream::<false>::create(LEASE).await;
    let other = || RedisStream::new(&stream.url, &stream.name, "other");
    is_refused(other(), &format!("`XGROUP CREATE {} other 0 MKSTREAM`", stream.name)).await;
    stream.publish(vec![Incoming::new("sent before")]).await;
    let made = other().create_group();
    made.connect().await.unwrap();
    made.connect().await.unwrap();
    assert_eq!(made.receive(9).await.unwrap()[0].message.body, b"sent before");
    made.close().await;
    stream.destroy().await;
}

#[tokio::test]
async fn settings_that_would_loop_are_refused() {
    let stream = Stream::<false>::create(LEASE).await;
    is_refused(stream.adapter().dead_letter_stream(&stream.name), "its own dead letters").await;
    is_refused(stream.adapter().consumer_name("idem:released"), "`idem:released`").await;
    is_refused(stream.adapter().body_field("idem-reason"), "begin with `idem-`").await;
    is_refused(RedisStream::new("http://127.0.0.1", "a", "b"), "has the form `redis://").await;
    stream.destroy().await;
}

#[tokio::test]
async fn a_replica_is_refused() {
    let stream = Stream::<true>::create(LEASE).await;
    let _: () = redis::cmd("REPLICAOF").arg("127.0.0.1").arg(1).query_async(&mut stream.conn().await).await.unwrap();
    is_refused(stream.adapter(), "this Redis is a replica").await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_repeated() {
    let server = Server::start(&[]).await;
    let place = server.url().replace("redis://", "");
    let stream = Stream::<true>::on(Some(server), LEASE).await;
    stream.set("requirepass", "right").await;
    for url in
        [format!("redis://{place}"), format!("redis://:hush-hush@{place}"), format!("redis://no:hush-hush@{place}")]
    {
        let adapter = || RedisStream::new(&url, &stream.name, GROUP);
        let text = refusal(adapter()).await;
        assert!(text.contains("refuses the user or the password"), "{text}");
        assert!(!format!("{text} {:?}", adapter()).contains("hush-hush"), "{text}");
    }
    RedisStream::new(format!("redis://:right@{place}"), &stream.name, GROUP).connect().await.unwrap();
}

/// With those that are documented everything works; without any of them nothing starts.
#[tokio::test]
async fn a_missing_permission_is_refused() {
    let server = Server::start(&[]).await;
    let url = server.url().replace("redis://", "redis://shop:hush@");
    let stream = Stream::<true>::on(Some(server), Duration::from_secs(1)).await;
    let mut conn = stream.conn().await;
    let adapter = || RedisStream::new(&url, &stream.name, GROUP).lease(Duration::from_secs(1));
    let keys = format!("~{} ~{}", stream.name, stream.dead());
    for missing in PERMISSIONS.split(' ') {
        set_user(&mut conn, &format!("{keys} {}", PERMISSIONS.replace(missing, ""))).await;
        // The server keeps a script that it knows.
        let _: () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut conn).await.unwrap();
        let text = refusal(adapter()).await;
        assert!(text.contains("the user may not do this in Redis"), "{missing}: {text}");
        let reasons: Vec<_> = text.split(": ").collect();
        assert!(reasons.windows(2).all(|pair| pair[0] != pair[1]), "{text}");
    }
    set_user(&mut conn, &format!("~{} {PERMISSIONS}", stream.name)).await;
    is_refused(adapter(), "the user may not do this in Redis").await;

    set_user(&mut conn, &format!("{keys} {PERMISSIONS}")).await;
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(1).await).await.unwrap();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::new(Gate::default()));
        stream.publish(vec![Incoming::new("{"), Wire::failing("e1", 1).message()]).await;
        let quick = RetryPolicy::default().first(Duration::from_millis(1));
        let consuming = Consumer::new(&engine, adapter()).route(route).retry(quick).start().await.unwrap();
        timeout(Duration::from_secs(20), consuming.until_settled()).await.unwrap();
        consuming.stop().await;
        assert_eq!((db.effects("e1").await, stream.dead_letters().await.len(), stream.unsettled().await), (1, 1, 0));
    })
    .await;
}

#[tokio::test]
async fn a_server_without_a_file_is_warned_of_once() {
    let server = Server::start(&["--appendonly", "no"]).await;
    let stream = Stream::<true>::on(Some(server), LEASE).await;
    let (logs, _guard) = Logs::capture();
    let warnings = || logs.up_to(Level::WARN).into_iter().filter(|line| line.contains("append-only")).count();
    let adapter = stream.adapter();
    adapter.connect().await.unwrap();
    adapter.connect().await.unwrap();
    assert_eq!(warnings(), 1);
    stream.set("appendonly", "yes").await;
    stream.adapter().connect().await.unwrap();
    assert_eq!(warnings(), 1);
}
