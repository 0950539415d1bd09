//! What the engine refuses to start on.

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Engine, ErrorKind, migrate};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver};

pub(super) async fn missing_tables_say_what_to_run<S: TestStore>(db: Arc<Db<S>>) {
    drop_tables(&db).await;
    let pool = db.pool(1).await;
    let error = Engine::start(pool.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    let text = error.to_string();
    assert!(text.contains("missing") && text.contains("idem_runtime::migrate(&pool)"), "{text}");
    migrate(&pool).await.unwrap();
    let engine = Engine::start(pool).await.unwrap();

    // Gone while the engine runs.
    db.run("DROP TABLE idem_key").await;
    let msg = Message::new("e1", [Step::Effect("e1")]);
    let ended = deliver(&engine, &msg).await;
    let expected = if S::NAME == "SQLite" { ErrorKind::Database } else { ErrorKind::Schema };
    assert_eq!((ended, msg.runs()), (Delivered::Refused(expected), 0));
}

async fn drop_tables<S: TestStore>(db: &Db<S>) {
    for table in ["idem_key", "idem_handler", "idem_lease", "idem_hold", "idem_forgotten", "idem_queue", "idem_schema"]
    {
        db.run(&format!("DROP TABLE {table}")).await;
    }
}

pub(super) async fn newer_tables_are_refused<S: TestStore>(db: Arc<Db<S>>) {
    db.run("UPDATE idem_schema SET version = 999 WHERE version = 2").await;
    let pool = db.pool(1).await;
    let error = Engine::start(pool.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("999"), "{error}");
    assert_eq!(migrate(&pool).await.unwrap_err().kind(), ErrorKind::Schema);

    // Older: the version table is there, but no migration was.
    db.run("DELETE FROM idem_schema").await;
    let error = Engine::start(pool).await.unwrap_err();
    assert!(error.to_string().contains("version 5 is needed"), "{error}");
}

pub(super) async fn migrating_twice_at_once_is_fine<S: TestStore>(db: Arc<Db<S>>) {
    drop_tables(&db).await;
    let pool = db.pool(4).await;
    // The host application's own migrations stay its own.
    db.run("CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY)").await;
    let (first, second) = tokio::join!(migrate(&pool), migrate(&pool));
    first.unwrap();
    second.unwrap();
    migrate(&pool).await.unwrap();
    assert_eq!(db.number("SELECT count(*) FROM _sqlx_migrations").await, 0);
    let engine = Engine::start(pool).await.unwrap();
    assert_eq!(deliver(&engine, &Message::new("e1", [Step::Effect("e1")])).await, Delivered::Applied);
}

pub(super) async fn a_read_only_database_is_named<S: TestStore>(db: Arc<Db<S>>) {
    let read_only = match S::NAME {
        "SQLite" => "PRAGMA query_only = ON",
        "PostgreSQL" => "SET default_transaction_read_only = on",
        _ => "SET SESSION TRANSACTION READ ONLY",
    };
    let engine = Engine::start(db.pool_with(1, read_only).await).await.unwrap();
    let msg = Message::new("e1", [Step::Effect("e1")]);
    assert_eq!(deliver(&engine, &msg).await, Delivered::Refused(ErrorKind::ReadOnly));
    assert_eq!((msg.runs(), db.keys().await), (0, 0));
}

pub(super) async fn no_server_is_an_error_at_start<S: TestStore>(db: Arc<Db<S>>) {
    let working = db.pool(1).await;
    let options = working.options().clone().acquire_timeout(Duration::from_millis(300));
    let pool = options.connect_lazy_with((*working.connect_options()).clone());
    pool.close().await;
    let error = Engine::start(pool).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(std::error::Error::source(&error).is_some(), "{error}");
}
