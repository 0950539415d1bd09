//! The database as the queue, on a file of its own.

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{DatabaseQueue, Incoming};
use idem_tests::{Folder, TestStore};
use sqlx::{Row, Sqlite, SqlitePool};

use super::TestBroker;

super::behaves!(sqlite, super::InAFile);

pub(crate) struct InAFile {
    folder: Arc<Folder>,
    pool: SqlitePool,
    lease: Duration,
}

impl InAFile {
    fn queue(&self) -> DatabaseQueue<Sqlite> {
        DatabaseQueue::new(&self.pool, "events").lease(self.lease).poll(Duration::from_millis(10))
    }
}

impl TestBroker for InAFile {
    type Adapter = DatabaseQueue<Sqlite>;
    const SERVICE: &'static str = "sqlite";
    const LEASE: Duration = Duration::from_secs(1);
    const LARGEST: usize = 10_000_000;

    async fn create(lease: Duration) -> Self {
        let folder = Arc::new(Sqlite::create().await);
        let pool = Sqlite::open(&folder, 4, "").await;
        idem_runtime::migrate(&pool).await.unwrap();
        Self { folder, pool, lease }
    }

    fn adapter(&self) -> DatabaseQueue<Sqlite> {
        self.queue()
    }

    async fn publish(&self, messages: Vec<Incoming>) {
        let mut tx = self.pool.begin().await.unwrap();
        for message in messages {
            self.queue().enqueue_in(&mut tx, &message).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    async fn unsettled(&self) -> u64 {
        let count = "SELECT count(*) FROM idem_queue WHERE dead_at IS NULL";
        let number: i64 = sqlx::query_scalar(count).fetch_one(&self.pool).await.unwrap();
        number.cast_unsigned()
    }

    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)> {
        let dead = "SELECT body, dead_reason FROM idem_queue WHERE dead_at IS NOT NULL";
        let rows = sqlx::query(dead).fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Nobody gets a lock.
    async fn outage(&self, length: Duration) {
        let mut conn = self.pool.acquire().await.unwrap();
        Sqlite::run(&mut conn, "BEGIN IMMEDIATE").await.unwrap();
        tokio::time::sleep(length).await;
        Sqlite::run(&mut conn, "COMMIT").await.unwrap();
    }

    fn unknown(&self) -> Option<DatabaseQueue<Sqlite>> {
        None
    }

    fn nowhere(&self) -> DatabaseQueue<Sqlite> {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.folder.path.join("no/such/folder"));
        DatabaseQueue::new(&SqlitePool::connect_lazy_with(options), "events")
    }

    async fn destroy(self) {
        self.pool.close().await;
    }
}
