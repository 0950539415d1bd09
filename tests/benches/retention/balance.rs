//! Events come and keys go, at one rate, for as long as there is time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_runtime::{Engine, Purger};
use idem_tests::Db;
use sqlx::Postgres;
use tokio::sync::Semaphore;

use crate::load::{ACCOUNTS, Consumers, resident_kb, sizes};

const CONSUMERS: u32 = 8;

pub(crate) async fn run(db: &Db<Postgres>, minutes: u64, rate: u64) {
    db.run(ACCOUNTS).await;
    let engine = Engine::start(db.pool(CONSUMERS + 1).await).await.unwrap();
    let budget = Arc::new(Semaphore::new(0));
    // A hundredth of a second's events at a time.
    let (source, per_tick) = (Arc::clone(&budget), usize::try_from(rate / 100).unwrap().max(1));
    let clock = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / 100);
        loop {
            ticks.tick().await;
            source.add_permits(per_tick);
        }
    });
    let consumers = Consumers::start(&engine, CONSUMERS, move || {
        let budget = Arc::clone(&budget);
        async move { budget.acquire_owned().await.unwrap().forget() }
    });
    let purging = Purger::new(&engine).start_hold(Duration::ZERO).interval(Duration::from_secs(10)).spawn();

    println!(
        "{:>6} {:>9} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10}",
        "minute", "events/s", "rows", "table MB", "index MB", "to ideal", "lag s", "memory kB"
    );
    let began = Instant::now();
    let (mut applied, mut at) = (0, Instant::now());
    let mut worst: f64 = 0.0;
    while began.elapsed() < Duration::from_secs(minutes * 60) {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let events = consumers.applied() - applied;
        let per_second = events as f64 / at.elapsed().as_secs_f64();
        (applied, at) = (consumers.applied(), Instant::now());
        let minute = began.elapsed().as_secs_f64() / 60.0;
        let (table, indexes) = sizes(db, "idem_key").await;
        let rows = db.keys().await;
        // Comparing costs a copy of the table.
        let part = if minute.fract() < 0.4 { 0.0 } else { (table + indexes) as f64 / ideal(db).await };
        // From the first turnover on.
        if minute > 12.0 {
            worst = worst.max(part);
        }
        println!(
            "{minute:>6.1} {per_second:>9.0} {rows:>10} {:>9.1} {:>9.1} {part:>9.2} {:>10} {:>10}",
            megabytes(table),
            megabytes(indexes),
            lag(db).await,
            resident_kb()
        );
    }
    purging.stop().await;
    // They wait for the clock's next tick.
    consumers.stop().await;
    clock.abort();
    println!("at worst {worst:.2} times the ideal size after two turnovers; {} rows", db.keys().await);
    println!("{} vacuums by the server", db.number(VACUUMS).await);
    engine.pool().close().await;
}

const VACUUMS: &str = "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relid = 'idem_key'::regclass";

/// What the same rows take in a new table with the same indexes, filled in the order in which they came.
async fn ideal(db: &Db<Postgres>) -> f64 {
    db.run("DROP TABLE IF EXISTS ideal").await;
    db.run("CREATE TABLE ideal (LIKE idem_key INCLUDING ALL)").await;
    db.run("INSERT INTO ideal SELECT * FROM idem_key ORDER BY claimed_at").await;
    let (table, indexes) = sizes(db, "ideal").await;
    db.run("DROP TABLE ideal").await;
    (table + indexes) as f64
}

/// For how long the oldest key has been overdue, in seconds.
async fn lag(db: &Db<Postgres>) -> i64 {
    let age = "SELECT coalesce(date_part('epoch', now() - min(claimed_at))::bigint, 0) FROM idem_key";
    (db.number(age).await - 360).max(0)
}

fn megabytes(bytes: i64) -> f64 {
    bytes as f64 / 1e6
}
