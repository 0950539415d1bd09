//! What only PostgreSQL does.

use std::time::Duration;

use idem_runtime::{Engine, ErrorKind, Isolation, idempotent};
use idem_tests::{Db, Delivered, Logs, Message, Step, deliver, perform};
use sqlx::{PgConnection, Postgres};
use tokio::task::JoinSet;

use crate::conformance::{jump, keys_of_two_handlers, natural, points, purged, purger, reached, until_none};

async fn test(test: impl AsyncFnOnce(std::sync::Arc<Db<Postgres>>)) {
    if !idem_tests::without_server("postgres") {
        Db::test(test).await;
    }
}

/// The error of an engine that is started on a wrong address.
async fn start_at(options: sqlx::postgres::PgConnectOptions) -> idem_runtime::Error {
    let pool = sqlx::postgres::PgPoolOptions::new().acquire_timeout(Duration::from_millis(500));
    Engine::start(pool.connect_lazy_with(options)).await.unwrap_err()
}

#[tokio::test]
async fn a_wrong_address_is_an_error_at_start() {
    test(async |db| {
        let (options, _) = db.place().clone();
        // A port that nobody listens on any more.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for options in [options.clone().host("127.0.0.1").port(port), options.database("no_such_database")] {
            let error = start_at(options).await;
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(std::error::Error::source(&error).is_some(), "{error}");
        }
    })
    .await;
}

/// [B25] The losers of a race meet 40001 above read committed; run again, they see the winner.
async fn duplicates_race(db: &Db<Postgres>, setup: &'static str) {
    let engine = Engine::start(db.pool_with(8, setup).await).await.unwrap();
    let mut tasks = JoinSet::new();
    for id in 0..64 {
        let engine = engine.clone();
        let msg = Message::new(format!("e{}", id % 8), [Step::Effect("e")]);
        tasks.spawn(async move { deliver(&engine, &msg).await });
    }
    let ended = tasks.join_all().await;
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Applied).count(), 8, "{ended:?}");
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Duplicate).count(), 56, "{ended:?}");
    assert_eq!((db.effects("e").await, db.keys().await), (8, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_race_under_repeatable_read() {
    test(async |db| duplicates_race(&db, "SET default_transaction_isolation = 'repeatable read'").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_race_under_serializable() {
    test(async |db| duplicates_race(&db, "SET default_transaction_isolation = 'serializable'").await).await;
}

#[idempotent(key(id), retention = "1d", name = "tests.settings")]
async fn settings(tx: &mut PgConnection, id: &str) -> sqlx::Result<(String, String)> {
    let lock_timeout = sqlx::query_scalar("SHOW lock_timeout").fetch_one(&mut *tx).await?;
    let isolation = sqlx::query_scalar("SHOW transaction_isolation").fetch_one(tx).await?;
    Ok((lock_timeout, isolation))
}

/// The bound is for the wait at the key; the handler's own waits are as the database is configured.
#[tokio::test]
async fn the_handler_keeps_its_lock_timeout_and_gets_the_isolation() {
    test(async |db| {
        let pool = db.pool_with(1, "SET lock_timeout = '42s'").await;
        let engine = Engine::builder(pool).isolation(Isolation::Serializable).start().await.unwrap();
        let seen = settings(&engine, "e1").await.unwrap().into_value().unwrap();
        assert_eq!(seen, ("42s".to_owned(), "serializable".to_owned()));
        let bounded = Engine::builder(engine.pool().clone()).claim_wait(Duration::from_secs(1)).start().await.unwrap();
        let seen = settings(&bounded, "e3").await.unwrap().into_value().unwrap();
        assert_eq!(seen, ("42s".to_owned(), "read committed".to_owned()));
        let check = "SELECT 1 / (current_setting('lock_timeout') = '42s')::int";
        assert!(natural(&bounded, &Message::new("e3", [Step::Sql(check.into())])).await.is_ok());
        let plain = db.engine(1).await;
        let seen = settings(&plain, "e2").await.unwrap().into_value().unwrap();
        assert_eq!(seen, ("0".to_owned(), "read committed".to_owned()));
    })
    .await;
}

/// A handler may use savepoints, sqlx's or its own.
#[idempotent(key(id), retention = "1d", name = "tests.savepoints")]
async fn savepoints(tx: &mut sqlx::Transaction<'_, Postgres>, id: &str) -> sqlx::Result<()> {
    use sqlx::{Acquire, Executor};
    let mut inner = tx.begin().await?;
    assert!(inner.execute("SELECT * FROM no_such_table").await.is_err());
    inner.rollback().await?;
    let mut inner = tx.begin().await?;
    inner.execute("INSERT INTO effect (note) VALUES ('inner')").await?;
    inner.commit().await?;
    tx.execute("SAVEPOINT mine; INSERT INTO effect (note) VALUES ('outer'); RELEASE mine").await?;
    Ok(())
}

#[tokio::test]
async fn savepoints_in_the_handler_are_no_escape() {
    test(async |db| {
        let engine = db.engine(1).await;
        assert!(savepoints(&engine, "e1").await.unwrap().is_applied());
        assert!(savepoints(&engine, "e1").await.unwrap().is_duplicate());
        assert_eq!((db.effects("inner").await, db.effects("outer").await), (1, 1));
    })
    .await;
}

/// A nested transaction that the handler leaves open is committed with the rest, as its Ok says.
#[tokio::test]
async fn a_doomed_savepoint_dooms_the_whole() {
    test(async |db| {
        let engine = db.engine(1).await;
        let msg = Message::new(
            "e1",
            [
                Step::Effect("e1"),
                Step::Sql("SAVEPOINT mine".into()),
                Step::Ignored("SELECT * FROM no_such_table".into()),
            ],
        );
        assert_eq!(deliver(&engine, &msg).await, Delivered::Refused(ErrorKind::Aborted));
        assert_eq!((db.keys().await, db.effects("e1").await), (0, 0));
    })
    .await;
}

/// The server has nothing to complain of: it logs a warning, and sends it, for each COMMIT or ROLLBACK that has no
/// transaction.
#[tokio::test]
async fn a_delivery_leaves_no_warning_and_no_open_transaction() {
    test(async |db| {
        let engine = db.engine(1).await;
        let (logs, _guard) = Logs::capture();
        for id in 0..5 {
            assert_eq!(deliver(&engine, &Message::new(format!("e{id}"), [])).await, Delivered::Applied);
            assert_eq!(deliver(&engine, &Message::new(format!("e{id}"), [])).await, Delivered::Duplicate);
            assert_eq!(deliver(&engine, &Message::new(format!("f{id}"), [Step::Fail])).await, Delivered::Failed);
        }
        let mut conn = engine.pool().acquire().await.unwrap();
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *conn).await.unwrap();
        let open = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state <> 'idle'");
        assert_eq!(db.number(&open).await, 0);
        assert_eq!(logs.up_to(tracing::Level::WARN), Vec::<String>::new());
        // The judge of the judge: such a warning would have been seen.
        sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
        assert_eq!(logs.up_to(tracing::Level::WARN).len(), 1);
    })
    .await;
}

/// Under `replay` the result is written after the body, and a doomed transaction is still called what it is.
#[idempotent(key(id), retention = "1d", name = "tests.doomed_replay", replay)]
async fn doomed_replay(tx: &mut PgConnection, id: &str) -> sqlx::Result<u8> {
    drop(sqlx::raw_sql("SELECT * FROM no_such_table").execute(tx).await);
    Ok(7)
}

#[tokio::test]
async fn a_doomed_transaction_under_replay_is_aborted() {
    test(async |db| {
        let engine = db.engine(1).await;
        let error = doomed_replay(&engine, "e1").await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::Aborted), "{error}");
        assert_eq!(perform(&engine, &Message::new("e1", [])).await.unwrap().into_value(), Some(1));
    })
    .await;
}

/// A session that bounds its lock waits by itself is left alone, and bounds the wait for the key too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_with_a_lock_timeout_bounds_the_claim() {
    test(async |db| {
        let engine = Engine::start(db.pool_with(4, "SET lock_timeout = '300ms'").await).await.unwrap();
        let (inside, go_on) = points();
        let first = tokio::spawn({
            let steps = [Step::Effect("e1"), Step::Reach(inside.clone()), Step::Await(go_on.clone())];
            let (engine, msg) = (engine.clone(), Message::new("e1", steps));
            async move { deliver(&engine, &msg).await }
        });
        reached(&inside).await;
        let second = Message::new("e1", [Step::Effect("e1")]);
        let ended = tokio::time::timeout(Duration::from_secs(3), deliver(&engine, &second)).await;
        assert_eq!(ended.expect("it is bounded by less than the default"), Delivered::Refused(ErrorKind::Busy));
        go_on.add_permits(1);
        assert_eq!(first.await.unwrap(), Delivered::Applied);
    })
    .await;
}

/// [B37] A live row that was read by a scan, or through an index and not deleted, is one that a bad plan looked at.
#[tokio::test]
async fn a_purge_reads_through_the_index_by_age_the_rows_that_it_deletes() {
    test(async |db| {
        let expired = keys_of_two_handlers(&db).await;
        db.run("ANALYZE idem_key").await;
        let engine = db.engine(1).await;
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(engine.pool()).await.unwrap();
        let pass = purger(&engine).pass().await.unwrap();
        assert_eq!((purged(&pass, "perform"), purged(&pass, "tests.greedy")), (expired, expired));
        engine.pool().close().await;
        // A session hands in what it counted before it is gone.
        until_none(&db, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}")).await;
        let through = "FROM pg_stat_user_indexes WHERE schemaname = current_schema() AND indexrelname";
        let by_age = db.number(&format!("SELECT idx_tup_fetch {through} = 'idem_key_age'")).await;
        let by_key = db.number(&format!("SELECT idx_scan {through} = 'idem_key_pkey'")).await;
        let scanned = "FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname = 'idem_key'";
        let scanned = db.number(&format!("SELECT seq_tup_read {scanned}")).await;
        assert_eq!((by_age, by_key, scanned), (i64::try_from(pass.purged()).unwrap(), 0, 0));
    })
    .await;
}

/// A lease lasts from when it was asked for, not from when the answer came: here twenty seconds later, after which it is
/// renewed before anything is deleted.
#[tokio::test]
async fn a_pass_counts_its_lease_from_when_it_asked_for_it() {
    test(async |db| {
        db.run(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO effect (note) VALUES ('taken'); RETURN NULL; END $$; \
             CREATE TRIGGER note AFTER UPDATE ON idem_lease FOR EACH ROW \
             WHEN (new.until_at > now() + interval '30 seconds') EXECUTE FUNCTION note()",
        )
        .await;
        let (engine, other) = (db.engine(1).await, db.pool(1).await);
        let mut lock = other.begin().await.unwrap();
        sqlx::query("SELECT * FROM idem_lease FOR UPDATE").fetch_one(&mut *lock).await.unwrap();
        let answer = async {
            let waiting =
                "FROM pg_stat_activity WHERE application_name = current_schema() AND wait_event_type = 'Lock'";
            until_none(&db, &format!("SELECT 1 - count(*) {waiting}")).await;
            jump(Duration::from_secs(20)).await;
            lock.rollback().await.unwrap();
        };
        let purger = purger(&engine);
        let (pass, ()) = tokio::join!(purger.pass(), answer);
        assert_eq!(pass.unwrap().stopped, None);
        assert_eq!(db.effects("taken").await, 2);
        other.close().await;
    })
    .await;
}
