//! The purge beside everything else that goes on: other nodes, deliveries, holds, restarts, errors. [B36, B37]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use idem_runtime::{Engine, Purger, Stopped, figures, orphans, place_hold};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver};
use tokio::sync::Semaphore;

use super::purge::{DAY, HOUR, ago, kept, keys, purged, purger, recorded, until_none};

/// [B37] Two nodes that purge at once, while handlers insert: no deadlock, no batch larger than it may be, each key once.
pub(super) async fn two_nodes_purge_while_handlers_insert<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10_000, 9 * DAY).await;
    keys(&db, "perform", 10_000, 8 * DAY).await;
    keys(&db, "perform", 500, DAY).await;
    let largest = Arc::new(AtomicU64::new(0));
    let nodes = [db.engine(2).await, db.engine(2).await];
    let passes = nodes.each_ref().map(|engine| {
        let largest = Arc::clone(&largest);
        let purger = purger(engine).after_batch(move |_, keys| {
            largest.fetch_max(keys, Ordering::SeqCst);
        });
        async move {
            loop {
                let pass = purger.pass().await.unwrap();
                assert!(pass.failures.is_empty(), "{pass:?}");
                if pass.stopped.is_none() {
                    return pass.purged();
                }
                assert_eq!(pass.stopped, Some(Stopped::Elsewhere));
                tokio::task::yield_now().await;
            }
        }
    });
    let consumer = db.engine(2).await;
    let deliveries = async {
        for number in 0..100 {
            let msg = Message::new(format!("e{number}"), [Step::Effect("e")]);
            assert_eq!(deliver(&consumer, &msg).await, Delivered::Applied);
        }
    };
    let [one, other] = passes;
    let (one, other, ()) = tokio::join!(one, other, deliveries);
    assert_eq!((one + other, kept(&db, "perform").await), (20_000, 600));
    assert_eq!(largest.load(Ordering::SeqCst), 1_000);
}

/// How long the handler's new events take, one after the other, as long as the test wants more.
#[allow(clippy::disallowed_methods, reason = "the judge has a clock of its own")]
async fn latencies<S: TestStore>(
    consumer: &Engine<S>,
    number: &mut u32,
    wants_more: impl Fn(usize) -> bool,
) -> Vec<Duration> {
    let mut latencies = Vec::new();
    while wants_more(latencies.len()) {
        *number += 1;
        let msg = Message::new(format!("e{number}"), [Step::Effect("e")]);
        let started = Instant::now();
        assert_eq!(deliver(consumer, &msg).await, Delivered::Applied);
        latencies.push(started.elapsed());
        // What a broker takes. On SQLite, who leaves no gap keeps the purge from writing for seconds.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    latencies
}

fn median(mut of: Vec<Duration>) -> Duration {
    of.sort_unstable();
    of[of.len() / 2]
}

/// [B37] Deliveries beside the purge of 20,000 keys, as it is by default, and alone. What else the machine does can spoil
/// a measurement, but not three.
pub(super) async fn deliveries_beside_a_purge_are_nearly_as_fast_as_alone<S: TestStore>(db: Arc<Db<S>>) {
    let (node, consumer) = (db.engine(2).await, db.engine(1).await);
    keys(&db, "perform", 10_000, DAY).await;
    let (mut number, mut measured) = (0, Vec::new());
    while measured.len() < 3 {
        let alone = latencies(&consumer, &mut number, |done| done < 100).await;
        let mut beside = Vec::new();
        // A pass is over too soon for so many where each of them takes four milliseconds.
        for _ in 0..4 {
            keys(&db, "perform", 10_000, 9 * DAY).await;
            keys(&db, "perform", 10_000, 8 * DAY).await;
            let purger = Purger::new(&node);
            let pass = tokio::spawn(async move { purger.pass().await.unwrap() });
            beside.extend(latencies(&consumer, &mut number, |_| !pass.is_finished()).await);
            assert_eq!(purged(&pass.await.unwrap(), "perform"), 20_000);
            if beside.len() >= 100 {
                break;
            }
        }
        let (enough, alone, beside) = (beside.len() >= 100, median(alone), median(beside));
        if enough && beside <= 3 * alone {
            return;
        }
        measured.push((enough, alone, beside));
    }
    panic!("whether there were 100 deliveries, their median alone, and beside a purge: {measured:?}");
}

/// A pool of one, as SQLite often has: whoever delivers gets the connection between two batches.
pub(super) async fn deliveries_get_the_only_connection_between_batches<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 1_000, 8 * DAY).await;
    let engine = db.engine(1).await;
    let purger = purger(&engine).batch_size(10);
    let delivery = async {
        for number in 0..5 {
            let msg = Message::new(format!("e{number}"), [Step::Effect("e")]);
            assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
        }
        kept(&db, "perform").await
    };
    let (pass, left) = tokio::join!(purger.pass(), delivery);
    assert_eq!(purged(&pass.unwrap(), "perform"), 1_000);
    assert!(left > 5, "the deliveries waited for the whole pass");
}

/// A hold counts from the next batch on.
pub(super) async fn a_hold_ends_the_pass_that_runs<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 1_000, 8 * DAY).await;
    let engine = db.engine(2).await;
    let begun = Arc::new(Semaphore::new(0));
    let told = Arc::clone(&begun);
    let purger = purger(&engine).batch_size(1).after_batch(move |_, keys| {
        told.add_permits(usize::try_from(keys).unwrap());
    });
    let hold = async {
        begun.acquire().await.unwrap().forget();
        place_hold(&engine, "an incident", "maria", Duration::from_secs(600)).await.unwrap();
        // All but the one that was waited for.
        begun.available_permits() + 1
    };
    let (pass, before) = tokio::join!(purger.pass(), hold);
    let pass = pass.unwrap();
    assert_eq!(pass.held().unwrap().author, "maria");
    let after = usize::try_from(pass.purged()).unwrap();
    // Besides the batch that ran.
    assert!((before..=before + 1).contains(&after), "{before} batches before the hold, {after} in all");
    assert_eq!(kept(&db, "perform").await, 1_000 - i64::try_from(after).unwrap());
}

/// A process that was away for hours may have a backlog again, even if it died while it waited or purged before.
pub(super) async fn the_wait_begins_anew_after_a_time_without_nodes<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    let engine = db.engine(2).await;
    let began =
        |held, seen| format!("UPDATE idem_lease SET held_since = {}, seen_at = {}", ago::<S>(held), ago::<S>(seen));
    db.run(&began(10 * HOUR, 8 * HOUR)).await;
    let hour = Duration::from_secs(3_600);
    let purging = purger(&engine).start_hold(hour).spawn();
    until_none(&db, &format!("SELECT count(*) FROM idem_lease WHERE held_since < {}", ago::<S>(600))).await;
    purging.stop().await;
    assert_eq!(db.keys().await, 10);

    // One that restarts all the time was never away.
    db.run(&began(2 * HOUR, 60)).await;
    let purging = purger(&engine).start_hold(hour).spawn();
    until_none(&db, "SELECT count(*) FROM idem_key").await;
    purging.stop().await;
}

/// [B36] Whatever goes wrong in one round, the next one comes.
pub(super) async fn a_round_that_panics_or_fails_is_no_end<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    let engine = db.engine(2).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let rounds = Arc::clone(&asked);
    let purging = purger(&engine)
        .start_hold(Duration::from_secs(3_600))
        .caught_up(move || {
            let round = rounds.fetch_add(1, Ordering::SeqCst);
            async move {
                assert_ne!(round, 0, "the hook panics, as told");
                true
            }
            .boxed()
        })
        .spawn();
    // To its end, or its lease would keep the next passes waiting for a minute.
    until_none(&db, "SELECT count(*) FROM idem_lease WHERE last_pass_at IS NULL").await;
    assert_eq!(db.keys().await, 0);
    // It has begun, and asks no more. Away for a round, the database is there again in the next one.
    db.run("ALTER TABLE idem_lease RENAME TO idem_lease_away").await;
    keys(&db, "perform", 10, 8 * DAY).await;
    for _ in 0..2 {
        // Every round begins with a sign of life; with the second one the first round has ended.
        db.run(&format!("UPDATE idem_handler SET last_seen_at = {}", ago::<S>(2 * HOUR))).await;
        until_none(&db, &format!("SELECT count(*) FROM idem_handler WHERE last_seen_at < {}", ago::<S>(HOUR))).await;
    }
    assert_eq!(db.keys().await, 10);
    db.run("ALTER TABLE idem_lease_away RENAME TO idem_lease").await;
    until_none(&db, "SELECT count(*) FROM idem_key").await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    purging.stop().await;
}

/// [B36] One handler whose keys cannot be purged keeps no other from it, and is in the pass.
pub(super) async fn a_handler_that_cannot_be_purged_keeps_no_other_from_it<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    keys(&db, "tests.greedy", 10, 8 * DAY).await;
    db.run(match S::NAME {
        "SQLite" => {
            "CREATE TRIGGER closed BEFORE DELETE ON idem_key WHEN old.handler = 'perform' \
             BEGIN SELECT raise(ABORT, 'closed'); END"
        }
        "PostgreSQL" => {
            "CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'closed'; END $$; \
             CREATE TRIGGER closed BEFORE DELETE ON idem_key FOR EACH ROW WHEN (old.handler = 'perform') \
             EXECUTE FUNCTION closed()"
        }
        _ => {
            "CREATE TRIGGER closed BEFORE DELETE ON idem_key FOR EACH ROW \
             IF old.handler = 'perform' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'closed'; END IF"
        }
    })
    .await;
    let engine = db.engine(1).await;
    let pass = purger(&engine).pass().await.unwrap();
    let failed: Vec<_> = pass.failures.iter().map(|(handler, _)| handler.as_str()).collect();
    assert_eq!((failed, pass.stopped), (vec!["perform"], None));
    assert_eq!((kept(&db, "perform").await, kept(&db, "tests.greedy").await), (10, 0));
    // The connection is in no transaction.
    assert_eq!(deliver(&engine, &Message::new("e1", [Step::Effect("e1")])).await, Delivered::Applied);
    assert_eq!(db.effects("e1").await, 1);
}

/// What the catalog and the command line show.
pub(super) async fn figures_say_what_is_there<S: TestStore>(db: Arc<Db<S>>) {
    recorded(&db, "default", "gone", HOUR).await;
    db.run(&format!("UPDATE idem_handler SET last_seen_at = {}", ago::<S>(2 * DAY))).await;
    keys(&db, "gone", 3, 2 * HOUR).await;
    keys(&db, "perform", 50, 8 * DAY).await;
    keys(&db, "perform", 30, HOUR).await;
    let engine = db.engine(1).await;
    let msg = Message::new("e1", [Step::Effect("e1")]);
    assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
    db.run(&format!("UPDATE idem_key SET claimed_at = {} WHERE claim <> 0", ago::<S>(HOUR))).await;
    assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);
    engine.flush_ages().await.unwrap();

    let all = figures(&engine).await.unwrap();
    let of = |name: &str| all.iter().find(|it| it.handler == name).unwrap();
    let near = |found: Duration, secs: i64| {
        let found = i64::try_from(found.as_secs()).unwrap();
        assert!((secs..secs + 30).contains(&found), "{found} is not {secs}");
    };
    let perform = of("perform");
    assert_eq!((perform.rows, perform.rows_are_estimated, perform.keys_last_day), (81, false, 31));
    assert_eq!((perform.retention, perform.is_orphan), (Duration::from_secs((7 * DAY).unsigned_abs()), false));
    near(perform.oldest_key_age.unwrap(), 8 * DAY);
    near(perform.purge_lag, DAY - 300);
    near(perform.highest_duplicate_age, HOUR);
    assert!((60..400).contains(&perform.bytes_per_row.unwrap()), "{perform:?}");
    let idle = of("tests.greedy");
    assert_eq!((idle.rows, idle.oldest_key_age, idle.bytes_per_row), (0, None, None));
    assert!(of("gone").is_orphan);

    let orphans = orphans(&engine).await.unwrap();
    let names: Vec<_> = orphans.iter().map(|orphan| orphan.handler.as_str()).collect();
    assert_eq!(names, ["gone"]);
    near(orphans[0].last_seen, 2 * DAY);
}
