//! What only SQLite does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idem_runtime::{Engine, ErrorKind, idempotent, migrate};
use idem_tests::{Db, Delivered, Message, Step, deliver};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{Sqlite, SqliteConnection};
use tokio::task::JoinSet;

use crate::conformance::{keys_of_two_handlers, purger};

/// Reads before it writes: a deferred transaction would fail as busy here.
#[idempotent(key(id), retention = "1d", name = "tests.reads_first")]
async fn reads_first(tx: &mut SqliteConnection, id: &i64) -> sqlx::Result<()> {
    let cents: i64 = sqlx::query_scalar("SELECT cents FROM account WHERE id = 1").fetch_one(&mut *tx).await?;
    sqlx::query("UPDATE account SET cents = ? WHERE id = 1").bind(cents + 1).execute(tx).await?;
    Ok(())
}

/// [B30]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_tasks_write_without_a_busy_error() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(16).await;
        let mut tasks = JoinSet::new();
        for worker in 0..16 {
            let engine = engine.clone();
            tasks.spawn(async move {
                for id in (worker..500).step_by(16) {
                    assert!(reads_first(&engine, &id).await.unwrap().is_applied());
                }
            });
        }
        tasks.join_all().await;
        assert_eq!((db.number("SELECT cents FROM account WHERE id = 1").await, db.keys().await), (500, 500));
    })
    .await;
}

/// A database in memory lives as long as its connection, which no cancelled or failed delivery may close.
#[tokio::test]
async fn a_database_in_memory_survives_whatever_handlers_do() {
    // sqlx closes a connection when an acquire is cancelled while it tests it, which is not ours to prevent.
    let options = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = options.connect("sqlite::memory:").await.unwrap();
    sqlx::raw_sql("CREATE TABLE effect (note TEXT)").execute(&pool).await.unwrap();
    migrate(&pool).await.unwrap();
    let engine = Engine::start(pool.clone()).await.unwrap();
    for cut in 0..100 {
        let msg = Message::new(format!("cut {cut}"), [Step::Effect("cut")]);
        drop(tokio::time::timeout(Duration::from_micros(cut * 10), deliver(&engine, &msg)).await);
    }
    for (id, steps) in [("panic", vec![Step::Panic]), ("fail", vec![Step::Fail])] {
        assert!(!deliver(&engine, &Message::new(id, steps)).await.is_acked());
    }
    for sql in ["COMMIT", "ROLLBACK"] {
        let escape = Message::new(sql, [Step::Sql(sql.into())]);
        assert_eq!(deliver(&engine, &escape).await, Delivered::Refused(ErrorKind::Escaped));
    }
    assert_eq!(deliver(&engine, &Message::new("last", [Step::Effect("last")])).await, Delivered::Applied);
    let last: i64 =
        sqlx::query_scalar("SELECT count(*) FROM effect WHERE note = 'last'").fetch_one(&pool).await.unwrap();
    assert_eq!(last, 1);
}

#[tokio::test]
async fn a_wrong_address_is_an_error_at_start() {
    let place = tempfile::tempdir().unwrap();
    let no_database = place.path().join("no.sqlite");
    std::fs::write(&no_database, "this is no database, and long enough to be taken for one".repeat(20)).unwrap();
    for path in [place.path().join("no such folder/test.sqlite"), no_database] {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let error = Engine::start(SqlitePoolOptions::new().connect_lazy_with(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn a_file_without_write_permission_is_read_only() {
    Db::<Sqlite>::test(async |db| {
        let options = SqliteConnectOptions::new().filename(db.place().path.join("test.sqlite")).read_only(true);
        let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
        let engine = Engine::start(pool).await.unwrap();
        let msg = Message::new("e1", [Step::Effect("e1")]);
        assert_eq!(deliver(&engine, &msg).await, Delivered::Refused(ErrorKind::ReadOnly));
        assert_eq!((msg.runs(), db.keys().await), (0, 0));
    })
    .await;
}

/// Without WAL a reader can make the COMMIT itself busy; the transaction is run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_commit_is_no_loss() {
    let place = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(place.path().join("rollback.sqlite"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Delete)
        .busy_timeout(Duration::from_millis(10));
    let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
    migrate(&pool).await.unwrap();
    sqlx::raw_sql("CREATE TABLE effect (note TEXT)").execute(&pool).await.unwrap();
    let engine = Engine::builder(pool.clone()).max_runs(2).start().await.unwrap();
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("SELECT * FROM effect").fetch_all(&mut *reader).await.unwrap();
    let msg = Message::new("e1", [Step::Effect("e1")]);
    assert_eq!(deliver(&engine, &msg).await, Delivered::Refused(ErrorKind::Contention));
    assert_eq!(msg.runs(), 2);
    reader.rollback().await.unwrap();
    assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
    let effects: i64 = sqlx::query_scalar("SELECT count(*) FROM effect").fetch_one(&pool).await.unwrap();
    assert_eq!(effects, 1);
}

/// After a duplicate the next one is only read, so that a replayed queue does not stand in the way of writers.
#[tokio::test]
async fn a_storm_of_duplicates_waits_for_no_writer() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(2).await;
        let msg = Message::new("e1", [Step::Effect("e1")]);
        assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
        assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);

        let other = db.pool(1).await;
        let writer = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        for _ in 0..10 {
            let ended = tokio::time::timeout(Duration::from_secs(2), deliver(&engine, &msg)).await;
            assert_eq!(ended.expect("reading waits for nobody"), Delivered::Duplicate);
        }
        writer.rollback().await.unwrap();

        // A new event goes the usual way, and ends the storm.
        assert_eq!(deliver(&engine, &Message::new("e2", [Step::Effect("e2")])).await, Delivered::Applied);
        assert_eq!((db.effects("e1").await, db.effects("e2").await, db.keys().await), (1, 1, 2));
        other.close().await;
    })
    .await;
}

/// Panics when it is cloned, which the engine does for a message that is moved in.
struct Fragile(&'static str);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        panic!("no copy of {}", self.0)
    }
}

#[idempotent(key(msg.0), retention = "1d", name = "tests.fragile")]
async fn fragile(_tx: &mut SqliteConnection, msg: Fragile) -> sqlx::Result<()> {
    unreachable!("{} was cloned", msg.0)
}

/// Panics when it is stored.
#[derive(Debug, serde::Deserialize)]
struct Unstorable;

impl serde::Serialize for Unstorable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("no form for this")
    }
}

#[idempotent(key(id), retention = "1d", name = "tests.unstorable", replay)]
async fn unstorable(tx: &mut SqliteConnection, id: &str) -> sqlx::Result<Unstorable> {
    sqlx::query("INSERT INTO effect (note) VALUES (?)").bind(id).execute(tx).await?;
    Ok(Unstorable)
}

/// Whatever of the user's panics around the body ends like a panic in it.
#[tokio::test]
async fn a_panic_beside_the_body_is_a_panicked_delivery() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        assert_eq!(fragile(&engine, Fragile("e1")).await.unwrap_err().kind(), Some(ErrorKind::Panicked));
        assert_eq!(unstorable(&engine, "e2").await.unwrap_err().kind(), Some(ErrorKind::Panicked));
        assert_eq!(deliver(&engine, &Message::new("e3", [Step::Effect("e3")])).await, Delivered::Applied);
        assert_eq!((db.effects("e2").await, db.effects("e3").await, db.keys().await), (0, 1, 1));
    })
    .await;
}

/// [B37] What a purge costs, in steps of SQLite's machine, with the index by age and without.
#[tokio::test]
async fn a_purge_goes_through_the_index_by_age() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let steps = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&steps);
        let mut conn = engine.pool().acquire().await.unwrap();
        conn.lock_handle().await.unwrap().set_progress_handler(100, move || {
            count.fetch_add(100, Ordering::Relaxed);
            true
        });
        drop(conn);
        let mut cost = Vec::new();
        for prepare in ["ANALYZE", "DROP INDEX idem_key_age"] {
            db.run("DELETE FROM idem_key").await;
            let expired = keys_of_two_handlers(&db).await;
            db.run(prepare).await;
            let before = steps.load(Ordering::Relaxed);
            assert_eq!(purger(&engine).batch_size(100).pass().await.unwrap().purged(), 2 * expired);
            cost.push((steps.load(Ordering::Relaxed) - before) / (2 * expired));
        }
        assert!(cost[1] > 5 * cost[0], "{cost:?} steps for a key, with the index and without");
    })
    .await;
}
