//! A database with the library's tables and the handlers', and a judge who knows nothing of the library.

use std::sync::Arc;

use futures_util::FutureExt;
use idem_runtime::{Engine, EngineBuilder};
use sqlx::Pool;

use crate::TestStore;

/// One test's database.
#[allow(missing_debug_implementations, reason = "a fixture")]
pub struct Db<S: TestStore> {
    place: S::Place,
    judge: Pool<S>,
}

impl<S: TestStore> Db<S> {
    /// Runs a test on a fresh database, and removes it whether the test passes or not.
    pub async fn test(test: impl AsyncFnOnce(Arc<Self>)) {
        let place = S::create().await;
        let judge = S::open(&place, 2, "").await;
        let db = Arc::new(Self { place, judge });
        idem_runtime::migrate(&db.judge).await.unwrap();
        db.run(S::TABLES).await;
        let outcome = std::panic::AssertUnwindSafe(test(Arc::clone(&db))).catch_unwind().await;
        db.judge.close().await;
        let Ok(db) = Arc::try_unwrap(db).map_err(drop) else {
            panic!("the test still uses its database after its end");
        };
        match outcome {
            Ok(()) => S::destroy(db.place).await,
            Err(panic) => {
                // Sessions that the test left behind may keep the database busy.
                drop(tokio::time::timeout(std::time::Duration::from_secs(5), S::destroy(db.place)).await);
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// A pool on the database.
    pub async fn pool(&self, max: u32) -> Pool<S> {
        S::open(&self.place, max, "").await
    }

    /// A pool whose connections are set up with a statement.
    pub async fn pool_with(&self, max: u32, setup: &'static str) -> Pool<S> {
        S::open(&self.place, max, setup).await
    }

    /// An engine with the defaults.
    pub async fn engine(&self, connections: u32) -> Engine<S> {
        self.engine_with(connections, |builder| builder).await
    }

    /// An engine that is configured.
    pub async fn engine_with(
        &self,
        connections: u32,
        configure: impl FnOnce(EngineBuilder<S>) -> EngineBuilder<S>,
    ) -> Engine<S> {
        configure(Engine::builder(self.pool(connections).await)).start().await.unwrap()
    }

    pub fn place(&self) -> &S::Place {
        &self.place
    }

    /// Runs SQL beside the library.
    pub async fn run(&self, sql: &str) {
        let mut conn = self.judge.acquire().await.unwrap();
        S::run(&mut conn, sql).await.unwrap();
    }

    /// Reads one number beside the library.
    pub async fn number(&self, sql: &str) -> i64 {
        let mut conn = self.judge.acquire().await.unwrap();
        S::number(&mut conn, sql).await.unwrap()
    }

    /// How often an effect with this note is durable.
    pub async fn effects(&self, note: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM effect WHERE note = '{note}'")).await
    }

    /// How many keys are durable.
    pub async fn keys(&self) -> i64 {
        self.number("SELECT count(*) FROM idem_key").await
    }
}
