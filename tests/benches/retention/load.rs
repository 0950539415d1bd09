//! Consumers, and what a process and a table take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use idem_runtime::{Engine, idempotent};
use idem_tests::Db;
use sqlx::{PgConnection, Postgres};
use tokio::task::JoinSet;

pub(crate) const ACCOUNTS: &str = "INSERT INTO account SELECT id, 0 FROM generate_series(3, 1000) AS id";

/// Credits one of a thousand accounts. A minute, and the tolerance of five, is the shortest time that keys are kept.
#[idempotent(key(id), retention = "1m", name = "bench.credit")]
async fn credit(tx: &mut PgConnection, id: &str, account: &i32) -> sqlx::Result<()> {
    let update = "UPDATE account SET cents = cents + 1 WHERE id = $1";
    sqlx::query(update).bind(*account).execute(tx).await.map(drop)
}

/// Consumers that each deliver one new event after the other.
pub(crate) struct Consumers {
    tasks: JoinSet<()>,
    stop: Arc<AtomicBool>,
    applied: Arc<AtomicU64>,
}

impl Consumers {
    /// `pace` is awaited before each event.
    pub(crate) fn start<P: Future<Output = ()> + Send>(
        engine: &Engine<Postgres>,
        count: u32,
        pace: impl Fn() -> P + Clone + Send + Sync + 'static,
    ) -> Self {
        let (stop, applied) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let (engine, stop, applied, pace) = (engine.clone(), Arc::clone(&stop), Arc::clone(&applied), pace.clone());
            tasks.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    pace().await;
                    let id = uuid::Uuid::new_v4().to_string();
                    let account = i32::from(id.as_bytes()[0]) + i32::from(id.as_bytes()[1]) + 1;
                    assert!(!credit(&engine, &id, &account).await.unwrap().is_duplicate());
                    applied.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { tasks, stop, applied }
    }

    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(task) = self.tasks.join_next().await {
            task.unwrap();
        }
    }
}

/// What this process keeps in memory, in kilobytes.
pub(crate) fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Table and indexes, in bytes.
pub(crate) async fn sizes(db: &Db<Postgres>, table: &str) -> (i64, i64) {
    let of = |function: &str| format!("SELECT {function}('{table}')");
    (db.number(&of("pg_table_size")).await, db.number(&of("pg_indexes_size")).await)
}
