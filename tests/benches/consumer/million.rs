//! A million deliveries through one consumer, and the memory of the process on the way.

use std::time::Instant;

use idem_runtime::{Consumer, DatabaseQueue, Engine, Incoming, idempotent};
use idem_tests::Db;
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, Transaction};

const MANY: u32 = 1_000_000;
const AT_ONCE: u32 = 20_000;

#[derive(Serialize, Deserialize)]
struct Seen {
    id: u32,
}

/// Every tenth event comes twice.
#[idempotent(key(msg.id), retention = "1d", name = "bench.million")]
async fn count(tx: &mut Transaction<'_, Sqlite>, msg: &Seen) -> sqlx::Result<()> {
    let _ = msg;
    sqlx::query("UPDATE account SET cents = cents + 1 WHERE id = 1").execute(&mut **tx).await.map(drop)
}

pub(crate) async fn run() {
    Db::<Sqlite>::test(async |db| {
        let pool = db.pool(2).await;
        let engine = Engine::start(pool.clone()).await.unwrap();
        let queue = DatabaseQueue::new(&pool, "bench");
        let consuming = Consumer::new(&engine, queue.clone()).handler::<count>().concurrency(2).batch(100);
        let consuming = consuming.start().await.unwrap();
        let begun = Instant::now();
        println!("{:>10} {:>12} {:>10}", "sent", "resident MB", "seconds");
        for first in (0..MANY).step_by(AT_ONCE as usize) {
            let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
            for number in first..first + AT_ONCE {
                let id = if number % 10 == 9 { number - 1 } else { number };
                let message = Incoming::new(serde_json::to_vec(&Seen { id }).unwrap());
                queue.enqueue_in(&mut tx, &message).await.unwrap();
            }
            tx.commit().await.unwrap();
            while left(&db).await > i64::from(AT_ONCE) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            if first % 100_000 == 0 {
                println!("{first:>10} {:>12.1} {:>10.0}", resident_mb(), begun.elapsed().as_secs_f64());
            }
        }
        consuming.until_settled().await;
        consuming.stop().await;
        let applied = db.number("SELECT cents FROM account WHERE id = 1").await;
        println!("{MANY:>10} {:>12.1} {:>10.0}", resident_mb(), begun.elapsed().as_secs_f64());
        println!("{applied} events applied, {} keys, {} messages left", db.keys().await, left(&db).await);
        assert_eq!((applied, left(&db).await), (i64::from(MANY / 10 * 9), 0));
        pool.close().await;
    })
    .await;
}

async fn left(db: &Db<Sqlite>) -> i64 {
    db.number("SELECT count(*) FROM idem_queue").await
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1_024.0
}
