//! A broker that takes something away: the queue, the time, the permission, the memory. [B48]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_runtime::{Adapter, ErrorKind, RabbitMq, Settlement};
use idem_tests::{Db, Gate, Wire};
use sqlx::Sqlite;
use tokio::time::{sleep, timeout};

use super::super::TestBroker;
use super::InRabbitMq;
use super::node::Node;
use super::own::{Classic, Counted, PATIENCE, SKIPPED, ack, at_work, connected, message, one, refusal, until};

/// [B48] The consumer stays, looks for it with growing pauses, and goes on when it is there again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_deleted_under_the_consumer_is_waited_for() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    Db::<Sqlite>::test(async |db| {
        let (gate, connects) = (Arc::<Gate>::default(), Arc::<AtomicU32>::default());
        let consuming = at_work(Counted(broker.adapter(), Arc::clone(&connects)), &gate, &db).await;
        broker.publish(vec![Wire::new("before").message()]).await;
        until("the effect", async || db.effects("before").await == 1).await;
        broker.delete(&broker.name).await;
        until("a further connection", async || connects.load(Ordering::SeqCst) >= 3).await;
        sleep(Duration::from_secs(2)).await;
        assert!(connects.load(Ordering::SeqCst) <= 10, "{connects:?}");
        broker.declare().await;
        broker.publish(vec![Wire::new("after").message()]).await;
        until("the effect", async || db.effects("after").await == 1).await;
        consuming.stop().await;
    })
    .await;
    broker.destroy().await;
}

/// [B48] The broker's only lease, which nothing extends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_slower_than_the_consumer_timeout_is_applied_once() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::on(Node::impatient().await).await;
    Db::<Sqlite>::test(async |db| {
        let (gate, connects) = (Arc::<Gate>::default(), Arc::<AtomicU32>::default());
        let consuming = at_work(Counted(broker.adapter(), Arc::clone(&connects)), &gate, &db).await;
        broker.publish(vec![Wire::waiting("slow").message()]).await;
        timeout(PATIENCE, gate.reached.acquire()).await.unwrap().unwrap().forget();
        until("the end of the channel", async || connects.load(Ordering::SeqCst) >= 2).await;
        assert!(connects.load(Ordering::SeqCst) <= 4, "{connects:?}");
        gate.open.add_permits(10);
        broker.publish((0..50).map(|number| Wire::new(format!("e{number}")).message()).collect()).await;
        until("the effects", async || db.number("SELECT count(*) FROM effect").await == 51).await;
        until("the end", async || broker.unsettled().await == 0).await;
        consuming.stop().await;
        assert_eq!((db.effects("slow").await, db.keys().await), (1, 51));
        assert_eq!(broker.dead_letters().await, []);
    })
    .await;
    broker.destroy().await;
}

#[tokio::test]
async fn the_consumer_timeout_is_named_and_what_was_held_is_stale() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::on(Node::impatient().await).await;
    broker.publish(vec![message("one")]).await;
    let adapter = connected(&broker).await;
    let late = one(&adapter).await;
    let error = timeout(PATIENCE, adapter.receive(1)).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("`consumer_timeout`"), "{error}");
    assert!(adapter.settle(&late, &Settlement::Ack).await.unwrap_err().to_string().contains("delivers it again"));
    adapter.connect().await.unwrap();
    ack(&adapter, &one(&adapter).await).await;
    adapter.close().await;
    assert_eq!(broker.unsettled().await, 0);
    broker.destroy().await;
}

/// What the user may do decides what is refused, and nothing is lost by it.
#[tokio::test]
async fn a_permission_that_is_missing_is_said() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    // Its own: `rabbitmqctl` takes longer than the impatient one waits.
    let node = Arc::new(Node::own("").await);
    let broker = Classic::on(Arc::clone(&node)).await;
    let name = &broker.name;
    let as_user = |user: &str| RabbitMq::new(node.url.replace("guest:guest@", &format!("{user}:s3cret@")), name);
    let everything_but =
        [("reader", "^$", ".*", "^$"), ("writer", ".*", "^$", ".*"), ("silent", ".*", "^idem.*", ".*")];
    for (kind, configure, write, read) in everything_but {
        let user = format!("{kind}-{name}");
        node.ctl(&["add_user", &user, "s3cret"]);
        let (kind, error) = refusal(as_user(&user)).await;
        assert_eq!(kind, ErrorKind::BrokerRefused);
        assert!(error.contains("refused the virtual host"), "{error}");
        node.ctl(&["set_permissions", &user, configure, write, read]);
    }
    // The dead-letter queue is not there yet, and this one may not create it.
    let (_, error) = refusal(as_user(&format!("reader-{name}"))).await;
    assert!(error.contains("refused the login or a permission") && error.contains(&broker.dead()), "{error}");
    let writer = as_user(&format!("silent-{name}"));
    writer.connect().await.unwrap();
    broker.publish(vec![message("poison")]).await;
    let poison = one(&writer).await;
    let dead = Settlement::DeadLetter { reason: "r".into() };
    let error = writer.settle(&poison, &dead).await.unwrap_err();
    let causes = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().contains("did not take it") && causes.contains("ACCESS_REFUSED"), "{error}: {causes}");
    node.ctl(&["set_permissions", &format!("silent-{name}"), ".*", ".*", ".*"]);
    // It is still this consumer's.
    writer.settle(&poison, &dead).await.unwrap();
    writer.close().await;
    assert_eq!((broker.unsettled().await, broker.dead_letters().await.len()), (0, 1));
    let (_, error) = refusal(as_user(&format!("reader-{name}"))).await;
    assert!(error.contains("ACCESS_REFUSED") && error.contains(name), "{error}");
    broker.destroy().await;
}

/// RabbitMQ stops reading from publishers then, and must still hear acknowledgements.
#[tokio::test]
async fn a_broker_short_of_memory_is_still_told_what_was_handled() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = InRabbitMq::<false, true>::create(PATIENCE).await;
    broker.publish((0..4).map(|number| message(&number.to_string())).collect()).await;
    let adapter = connected(&broker).await;
    let dead = Settlement::DeadLetter { reason: "r".into() };
    adapter.settle(&one(&adapter).await, &dead).await.unwrap();
    broker.node.ctl(&["set_vm_memory_high_watermark", "0.000001"]);
    let second = one(&adapter).await;
    let parked = timeout(Duration::from_secs(3), adapter.settle(&second, &dead)).await;
    assert!(parked.is_err(), "{parked:?}");
    let others = timeout(PATIENCE, adapter.receive(2)).await.unwrap().unwrap();
    for delivery in &others {
        timeout(Duration::from_secs(5), adapter.settle(delivery, &Settlement::Ack)).await.unwrap().unwrap();
    }
    broker.node.ctl(&["set_vm_memory_high_watermark", "0.4"]);
    adapter.settle(&second, &dead).await.unwrap();
    adapter.close().await;
    assert!(broker.dead_letters().await.len() >= 2);
    broker.destroy().await;
}

/// One question stands behind the acknowledgements of a whole batch; each has an answer of its own all the same.
#[tokio::test]
async fn of_a_batch_across_a_reconnect_only_the_former_channels_part_is_stale() {
    if idem_tests::without_server(SKIPPED) {
        return;
    }
    let broker = Classic::create(PATIENCE).await;
    broker.publish((0..120).map(|number| message(&format!("m{number}"))).collect()).await;
    let adapter = connected(&broker).await;
    let mut former = Vec::new();
    while former.len() < 20 {
        former.extend(timeout(PATIENCE, adapter.receive(20 - former.len())).await.unwrap().unwrap());
    }
    let acked = adapter.ack_all(&former).await;
    assert!(acked.len() == 20 && acked.iter().all(Result::is_ok), "{acked:?}");
    assert_eq!(broker.unsettled().await, 100);

    let lost = one(&adapter).await;
    adapter.connect().await.unwrap();
    let mut batch = vec![lost];
    while batch.len() < 101 {
        batch.extend(timeout(PATIENCE, adapter.receive(101 - batch.len())).await.unwrap().unwrap());
    }
    let acked = adapter.ack_all(&batch).await;
    let stale = acked[0].as_ref().unwrap_err().to_string();
    assert!(stale.contains("has ended, and RabbitMQ delivers it again"), "{stale}");
    assert!(acked.len() == 101 && acked[1..].iter().all(Result::is_ok), "{acked:?}");
    let again = adapter.ack_all(&batch[1..]).await;
    assert!(again.iter().all(Result::is_err), "{again:?}");
    until("the end", async || broker.unsettled().await == 0).await;
    adapter.close().await;
    broker.destroy().await;
}
