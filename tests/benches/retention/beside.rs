//! A large table of which a part has expired, and consumers that go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use idem_runtime::{Engine, Purger};
use idem_tests::Db;
use sqlx::Postgres;

use crate::load::{ACCOUNTS, Consumers, resident_kb};

const CONSUMERS: u32 = 8;

const TURN: Duration = Duration::from_secs(4);

pub(crate) async fn run(db: &Db<Postgres>, keys: u64, expired: u64) {
    db.run(ACCOUNTS).await;
    fill(db, keys, expired).await;
    // The purge has a connection of the same pool.
    let engine = Engine::start(db.pool(CONSUMERS + 1).await).await.unwrap();
    let purged = Arc::new(AtomicU64::new(0));
    let consumers = Consumers::start(&engine, CONSUMERS, || std::future::ready(()));
    turn(&consumers).await;

    println!(
        "{:>5} {:>12} {:>12} {:>6} {:>12} {:>12}",
        "turn", "alone /s", "beside /s", "part", "purged /s", "memory kB"
    );
    let (mut parts, mut purging_time, mut number) = (Vec::new(), Duration::ZERO, 0);
    while purged.load(Ordering::Relaxed) < expired {
        number += 1;
        let alone = turn(&consumers).await;
        let (before, began) = (purged.load(Ordering::Relaxed), Instant::now());
        let told = Arc::clone(&purged);
        let purger = Purger::new(&engine).start_hold(Duration::ZERO).interval(Duration::from_secs(1));
        let purging = purger.after_batch(move |_, keys| _ = told.fetch_add(keys, Ordering::Relaxed)).spawn();
        let beside = turn(&consumers).await;
        purging.stop().await;
        let deleted = purged.load(Ordering::Relaxed) - before;
        let is_whole = purged.load(Ordering::Relaxed) < expired;
        println!(
            "{number:>5} {alone:>12.0} {beside:>12.0} {:>6.3} {:>12.0} {:>12}",
            beside / alone,
            deleted as f64 / began.elapsed().as_secs_f64(),
            resident_kb()
        );
        // The last one has less to purge.
        if is_whole || number == 1 {
            parts.push(beside / alone);
            purging_time += began.elapsed();
        }
    }
    consumers.stop().await;
    parts.sort_by(f64::total_cmp);
    println!("consumers keep {:.3} of their throughput (median of {} turns)", parts[parts.len() / 2], parts.len());
    println!("{} left, of which older than six minutes: {}", db.keys().await, older(db).await);
    engine.pool().close().await;
}

/// How many events a second the consumers apply.
async fn turn(consumers: &Consumers) -> f64 {
    let (before, began) = (consumers.applied(), Instant::now());
    tokio::time::sleep(TURN).await;
    (consumers.applied() - before) as f64 / began.elapsed().as_secs_f64()
}

/// The expired keys were the first to come. The others are younger than their retention until the benchmark is over.
async fn fill(db: &Db<Postgres>, keys: u64, expired: u64) {
    let began = Instant::now();
    db.run(&format!(
        "INSERT INTO idem_key (handler, event_key, claimed_at, claim)
         SELECT 'bench.credit', convert_to('1/s:' || gen_random_uuid(), 'UTF8'),
                CASE WHEN n <= {expired} THEN now() - interval '1 day' + n * interval '1 millisecond'
                     ELSE now() + interval '1 day' + n * interval '1 millisecond' END, n
         FROM generate_series(1, {keys}) AS n"
    ))
    .await;
    db.run("VACUUM ANALYZE idem_key").await;
    db.run("CHECKPOINT").await;
    println!("{keys} keys, {expired} of them expired, in {:.0} s", began.elapsed().as_secs_f64());
}

async fn older(db: &Db<Postgres>) -> i64 {
    db.number("SELECT count(*) FROM idem_key WHERE claimed_at < now() - interval '10 minutes'").await
}
