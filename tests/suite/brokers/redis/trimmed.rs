//! Entries that leave the stream before they are acknowledged: never without a word.

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Adapter, Consumer, Engine, Incoming, Route, Settlement};
use idem_tests::{Consumes, Db, Gate, Logs, Wire};
use redis::AsyncCommands;
use redis::streams::StreamMaxlen;
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::super::TestBroker;
use super::Stream;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(1);

fn losses(logs: &Logs) -> Vec<String> {
    logs.up_to(Level::ERROR).into_iter().filter(|line| line.contains("lost; trim only what is acknowledged")).collect()
}

/// [B49] It is said, it does not come again and again, and what is behind it comes.
#[tokio::test]
async fn what_was_pending_and_deleted_is_an_error_and_holds_nothing_up() {
    let stream = Stream::<false>::create(SHORT).await;
    let (logs, _guard) = Logs::capture();
    let gone = stream.add(&[("body", b"gone")]).await;
    stream.add(&[("body", b"here")]).await;
    let dead_consumer = stream.adapter();
    dead_consumer.connect().await.unwrap();
    while stream.group().await.0 < 2 {
        drop(dead_consumer.receive(2).await.unwrap());
    }
    let _: () = stream.conn().await.xdel(&stream.name, &[&gone]).await.unwrap();
    sleep(SHORT).await;
    let adapter = stream.adapter();
    adapter.connect().await.unwrap();
    let mut came = Vec::new();
    while came.is_empty() {
        came = adapter.receive(9).await.unwrap();
    }
    assert_eq!((came.len(), &came[0].message.body[..], came[0].attempt), (1, &b"here"[..], 2));
    adapter.settle(&came[0], &Settlement::Ack).await.unwrap();
    assert_eq!(stream.unsettled().await, 0);
    let losses = losses(&logs);
    assert_eq!(losses.len(), 1, "{losses:#?}");
    assert!(losses[0].contains(&gone), "{losses:#?}");
    stream.destroy().await;
}

#[tokio::test]
async fn what_is_deleted_while_it_is_handled_is_kept_as_a_dead_letter() {
    let stream = Stream::<false>::create(LONG).await;
    stream.publish(["a", "b", "c"].map(|body| Incoming::new(body).with_header("trace", "7")).to_vec()).await;
    let adapter = stream.adapter();
    adapter.connect().await.unwrap();
    let came = adapter.receive(9).await.unwrap();
    assert_eq!(came.len(), 3);
    let _: () = stream.conn().await.xtrim(&stream.name, StreamMaxlen::Equals(0)).await.unwrap();
    let error = adapter.extend(&came[0].receipt).await.unwrap_err().to_string();
    assert!(error.contains("trimmed or deleted from the stream while it is handled"), "{error}");
    adapter.settle(&came[0], &Settlement::Release { after: Duration::ZERO }).await.unwrap();
    adapter.settle(&came[1], &Settlement::DeadLetter { reason: "poison".to_owned() }).await.unwrap();
    adapter.settle(&came[2], &Settlement::Ack).await.unwrap();
    let dead = stream.dead_letters().await;
    assert_eq!((dead.len(), &dead[0].0[..], &dead[1]), (2, &b"a"[..], &(b"b".to_vec(), "poison".to_owned())));
    assert!(dead[0].1.contains("cannot come again"), "{dead:?}");
    let kept: redis::streams::StreamRangeReply = stream.conn().await.xrange_all(stream.dead()).await.unwrap();
    assert!(kept.ids.iter().all(|letter| letter.get("trace") == Some("7".to_owned())));
    assert_eq!(stream.unsettled().await, 0);
    stream.destroy().await;
}

#[tokio::test]
async fn what_was_trimmed_before_it_was_read_is_an_error_once_and_does_not_count_as_waiting() {
    let stream = Stream::<false>::create(LONG).await;
    let (logs, _guard) = Logs::capture();
    let adapter = stream.adapter();
    adapter.connect().await.unwrap();
    stream.publish(vec![Incoming::new("read")]).await;
    let mut read = Vec::new();
    while read.is_empty() {
        read = adapter.receive(1).await.unwrap();
    }
    adapter.settle(&read[0], &Settlement::Ack).await.unwrap();
    stream.publish((0..10).map(|number| Incoming::new(number.to_string())).collect()).await;
    let _: () = stream.conn().await.xtrim(&stream.name, StreamMaxlen::Equals(4)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 4);
    }
    assert_eq!(losses(&logs).len(), 1, "{:#?}", losses(&logs));
    assert!(losses(&logs)[0].contains("entries=6"), "{:#?}", losses(&logs));
    // Said at the start as well.
    stream.adapter().connect().await.unwrap();
    assert_eq!(losses(&logs).len(), 2);
    let mut left = 4;
    while left > 0 {
        for delivery in adapter.receive(4).await.unwrap() {
            adapter.settle(&delivery, &Settlement::Ack).await.unwrap();
            left -= 1;
        }
    }
    assert_eq!(adapter.lag().await.unwrap().unwrap().messages, 0);
    stream.destroy().await;
}

#[tokio::test]
async fn a_stream_that_is_deleted_and_made_again_is_consumed_again() {
    let stream = Stream::<false>::create(SHORT).await;
    let (logs, _guard) = Logs::capture();
    Db::<Sqlite>::test(async |db| {
        let engine = Engine::start(db.pool(1).await).await.unwrap();
        let route = Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(Arc::new(Gate::default()));
        let consuming = Consumer::new(&engine, stream.adapter()).route(route).start().await.unwrap();
        let _: () = stream.conn().await.del(&stream.name).await.unwrap();
        let missing = async {
            while !logs.up_to(Level::WARN).iter().any(|line| line.contains("`XGROUP CREATE ")) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), missing).await.expect("the consumer does not say what is missing");
        stream.make_group().await;
        stream.publish(vec![Wire::new("again").message()]).await;
        let applied = async {
            while db.effects("again").await == 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), applied).await.unwrap();
        consuming.stop().await;
    })
    .await;
    stream.destroy().await;
}
