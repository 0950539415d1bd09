//! What only MySQL and MariaDB do.

use std::time::Duration;

use idem_runtime::{Engine, ErrorKind, Isolation, idempotent};
use idem_tests::{Db, Delivered, Message, Step, deliver, perform};
use sqlx::{MySql, MySqlConnection};
use tokio::task::JoinSet;

use crate::conformance::{keys_of_two_handlers, points, purged, purger, reached};

async fn test(test: impl AsyncFnOnce(std::sync::Arc<Db<MySql>>)) {
    if !idem_tests::without_server("mysql") {
        Db::test(test).await;
    }
}

#[tokio::test]
async fn a_wrong_address_is_an_error_at_start() {
    test(async |db| {
        let (options, _) = db.place().clone();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for options in [options.clone().host("127.0.0.1").port(port), options.database("no_such_database")] {
            let pool = sqlx::mysql::MySqlPoolOptions::new().acquire_timeout(Duration::from_millis(500));
            let error = Engine::start(pool.connect_lazy_with(options)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(std::error::Error::source(&error).is_some(), "{error}");
        }
    })
    .await;
}

/// [B10] DDL commits the key and whatever the handler had done.
#[tokio::test]
async fn ddl_in_the_handler_is_found_out() {
    test(async |db| {
        let engine = db.engine(1).await;
        for (id, last) in [("e1", Step::Effect("after")), ("e2", Step::Fail), ("e3", Step::Panic)] {
            let ddl = Step::Sql(format!("CREATE TABLE made_by_{id} (id INT)"));
            let error = perform(&engine, &Message::new(id, [Step::Effect("before"), ddl, last])).await.unwrap_err();
            assert_eq!(error.kind(), Some(ErrorKind::Escaped), "{error}");
            assert!(error.to_string().contains("its key is stored"), "{error}");
        }
        assert_eq!(deliver(&engine, &Message::new("e4", [Step::Effect("e4")])).await, Delivered::Applied);
        assert_eq!((db.keys().await, db.effects("before").await), (4, 3));
    })
    .await;
}

/// [B09] The victim's statement fails, the server has rolled everything back, and the handler goes on regardless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_victim_that_ignores_it_is_found_out() {
    test(async |db| {
        let engine = db.engine(4).await;
        let (inside, go_on) = points();
        let update = |id: u32| format!("UPDATE account SET cents = cents + 1 WHERE id = {id}");
        let mut tasks = JoinSet::new();
        for (id, first, second, note) in [("e1", 1, 2, "effect of e1"), ("e2", 2, 1, "effect of e2")] {
            let steps = [
                Step::Sql(update(first)),
                Step::Reach(inside.clone()),
                Step::Await(go_on.clone()),
                Step::Ignored(update(second)),
                Step::Effect(note),
            ];
            let (engine, msg) = (engine.clone(), Message::new(id, steps));
            tasks.spawn(async move { (id, note, deliver(&engine, &msg).await) });
        }
        reached(&inside).await;
        reached(&inside).await;
        go_on.add_permits(2);
        let mut ended = tasks.join_all().await;
        ended.sort_by_key(|(_, _, ended)| !ended.is_acked());
        assert_eq!(ended[0].2, Delivered::Applied, "{ended:?}");
        assert_eq!(ended[1].2, Delivered::Refused(ErrorKind::Escaped), "{ended:?}");
        assert_eq!((db.keys().await, db.effects(ended[0].1).await), (1, 1));
        // What the victim wrote after the deadlock went in on its own, which is why the error is loud. The redelivery is
        // no duplicate, since the key went with the transaction.
        let again = Message::new(ended[1].0, [Step::Effect("again")]);
        assert_eq!(deliver(&engine, &again).await, Delivered::Applied);
    })
    .await;
}

/// Reads a balance, has somebody else change it, and reads it again.
#[idempotent(key(id), retention = "1d", name = "tests.reads_twice")]
async fn reads_twice(tx: &mut MySqlConnection, id: &str, db: &Db<MySql>) -> sqlx::Result<(u64, bool)> {
    let wait = sqlx::query_scalar("SELECT @@innodb_lock_wait_timeout").fetch_one(&mut *tx).await?;
    let balance = "SELECT cents FROM account WHERE id = 1";
    let first: i64 = sqlx::query_scalar(balance).fetch_one(&mut *tx).await?;
    db.run("UPDATE account SET cents = cents + 1 WHERE id = 1").await;
    let second: i64 = sqlx::query_scalar(balance).fetch_one(tx).await?;
    Ok((wait, first == second))
}

/// The bound is for the wait at the key; the handler's own waits are as the server is configured.
#[tokio::test]
async fn the_handler_keeps_its_lock_wait_and_gets_the_isolation() {
    test(async |db| {
        let pool = db.pool_with(1, "SET SESSION innodb_lock_wait_timeout = 42").await;
        for (id, isolation, repeatable) in
            [("e1", Isolation::ReadCommitted, false), ("e2", Isolation::RepeatableRead, true)]
        {
            let engine = Engine::builder(pool.clone()).isolation(isolation).start().await.unwrap();
            let seen = reads_twice(&engine, id, &db).await.unwrap().into_value().unwrap();
            assert_eq!(seen, (42, repeatable), "{isolation:?}");
        }
    })
    .await;
}

/// How many rows the pool's only session has read, by how it came to them.
async fn rows_read(pool: &sqlx::MySqlPool) -> Vec<(String, u64)> {
    let status = "SHOW SESSION STATUS LIKE 'Handler_read%'";
    let rows: Vec<(String, String)> = sqlx::query_as(status).fetch_all(pool).await.unwrap();
    rows.into_iter().map(|(name, count)| (name, count.parse().unwrap())).collect()
}

/// [B37] A batch of another plan reads all keys of its handler, or of the table.
#[tokio::test]
async fn a_purge_reads_through_an_index_the_rows_that_it_deletes() {
    test(async |db| {
        let expired = keys_of_two_handlers(&db).await;
        db.run("ANALYZE TABLE idem_key").await;
        let engine = db.engine(1).await;
        let before = rows_read(engine.pool()).await;
        let pass = purger(&engine).pass().await.unwrap();
        assert_eq!((purged(&pass, "perform"), purged(&pass, "tests.greedy")), (expired, expired));
        let after = rows_read(engine.pool()).await;
        let read =
            |(name, count): &(String, u64)| count - before.iter().find(|(it, _)| it == name).map_or(0, |it| it.1);
        assert!(after.iter().all(|count| read(count) < 2 * pass.purged()), "{before:?}, {after:?}");
    })
    .await;
}
