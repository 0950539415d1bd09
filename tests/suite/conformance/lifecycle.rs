//! Cancellation, panic, crash, pool (class G).

use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Engine, ErrorKind, Failure, idempotent};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver, perform};
use sqlx::Transaction;

use super::{points, reached};

pub(super) async fn a_panic_leaves_nothing_behind<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let msg =
        Message { first_run: Some(vec![Step::Effect("e1"), Step::Panic]), ..Message::new("e1", [Step::Effect("e1")]) };
    let error = perform(&engine, &msg).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Panicked));
    assert!(error.to_string().contains("the handler panics, as told"), "{error}");
    assert_eq!((db.keys().await, db.effects("e1").await), (0, 0));
    assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
    assert_eq!((db.keys().await, db.effects("e1").await), (1, 1));
}

pub(super) async fn a_cancelled_body_leaves_nothing_behind<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let (inside, never) = points();
    let task = tokio::spawn({
        let msg = Message::new("e1", [Step::Effect("e1"), Step::Reach(Arc::clone(&inside)), Step::Await(never)]);
        let engine = engine.clone();
        async move { deliver(&engine, &msg).await }
    });
    reached(&inside).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    // The only connection comes back clean: what it writes is seen by others.
    assert_eq!(deliver(&engine, &Message::new("e2", [Step::Effect("e2")])).await, Delivered::Applied);
    assert_eq!((db.keys().await, db.effects("e1").await, db.effects("e2").await), (1, 0, 1));
    assert_eq!(deliver(&engine, &Message::new("e1", [Step::Effect("e1")])).await, Delivered::Applied);
}

/// [B26]
pub(super) async fn deliveries_cut_off_anywhere_leave_clean_connections<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let mut finished = 0;
    for cut in 0..500_u64 {
        let msg = Message::new(format!("cut {cut}"), [Step::Effect("cut")]);
        let micros = cut * 10;
        if let Ok(ended) = tokio::time::timeout(Duration::from_micros(micros), deliver(&engine, &msg)).await {
            assert_eq!(ended, Delivered::Applied);
            finished += 1;
        }
    }
    for id in 0..20 {
        let msg = Message::new(format!("after {id}"), [Step::Effect("after")]);
        assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
    }
    assert_eq!(db.effects("after").await, 20);
    // A cut can fall between the commit and its answer, but never between key and effect.
    let effects = db.effects("cut").await;
    assert_eq!(db.keys().await, effects + 20);
    assert!(effects >= finished, "{effects} effects, {finished} deliveries that were told so");
    if S::NAME == "PostgreSQL" {
        let idle = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' \
                    AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()";
        engine.pool().close().await;
        assert_eq!(db.number(idle).await, 0);
    }
}

/// [B29]
pub(super) async fn one_connection_is_enough<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let mut tasks = tokio::task::JoinSet::new();
    for id in 0..100 {
        let engine = engine.clone();
        tasks.spawn(async move { deliver(&engine, &Message::new(format!("e{}", id / 2), [Step::Effect("e")])).await });
    }
    let ended = tasks.join_all().await;
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Applied).count(), 50);
    assert_eq!(ended.iter().filter(|ended| **ended == Delivered::Duplicate).count(), 50);
    assert_eq!((db.keys().await, db.effects("e").await), (50, 50));
}

/// A connection goes from delivery to delivery without a detour over the pool, but not for ever.
pub(super) async fn others_get_the_connection_between_deliveries<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let (stop, busy) = (Arc::new(std::sync::atomic::AtomicBool::new(false)), engine.clone());
    let deliveries = tokio::spawn({
        let stop = Arc::clone(&stop);
        async move {
            let mut id = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                let msg = Message::new(format!("e{id}"), [Step::Effect("e")]);
                assert_eq!(deliver(&busy, &msg).await, Delivered::Applied);
                id += 1;
            }
            id
        }
    });
    for _ in 0..10 {
        let mut conn = tokio::time::timeout(Duration::from_secs(5), engine.pool().acquire()).await.unwrap().unwrap();
        S::run(&mut conn, "SELECT 1").await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    let delivered = deliveries.await.unwrap();
    assert_eq!((db.effects("e").await, db.keys().await), (delivered, delivered));
    engine.pool().close().await;
}

/// Takes a second connection, which it should not.
#[idempotent(key(id), retention = "1d", name = "tests.greedy")]
async fn greedy<S: TestStore>(_tx: &mut Transaction<'_, S>, id: &str, another: &Engine<S>) -> sqlx::Result<()> {
    let mut second = another.pool().acquire().await?;
    S::run(&mut second, "SELECT 1").await.map(drop)
}

/// [B29]
pub(super) async fn a_second_connection_fails_within_the_timeout<S: TestStore>(db: Arc<Db<S>>) {
    let wide = db.pool(1).await;
    let options = wide.options().clone().acquire_timeout(Duration::from_millis(300));
    let pool = options.connect_with((*wide.connect_options()).clone()).await.unwrap();
    wide.close().await;
    let engine = Engine::start(pool).await.unwrap();
    let error = greedy(&engine, "e1", &engine).await.unwrap_err();
    let Failure::Handler(failed) = error else { panic!("{error}") };
    assert!(matches!(failed.error, sqlx::Error::PoolTimedOut), "{failed}");
    assert!(failed.to_string().contains("handler `tests.greedy`, key `1/s:e1`"), "{failed}");
    assert_eq!(deliver(&engine, &Message::new("e2", [Step::Effect("e2")])).await, Delivered::Applied);

    // A delivery that finds no connection at all says why.
    let only = engine.pool().acquire().await.unwrap();
    let error = perform(&engine, &Message::new("e3", [])).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Unavailable));
    assert!(error.to_string().contains("should use the transaction it is given"), "{error}");
    drop(only);
}

/// [B31] The text of a statement does not depend on the message.
pub(super) async fn many_keys_need_few_statements<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let mut counts = Vec::new();
    for id in 0..2_000 {
        assert_eq!(deliver(&engine, &Message::new(format!("e{id}"), [])).await, Delivered::Applied);
        assert_eq!(deliver(&engine, &Message::new(format!("e{id}"), [])).await, Delivered::Duplicate);
        if id == 0 || id == 1_999 {
            counts.push(S::cached_statements(&*engine.pool().acquire().await.unwrap()));
        }
    }
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0] <= 6, "{counts:?}");
}

/// [B31] The switch for poolers: nothing stays behind in the session, and everything still works.
pub(super) async fn without_a_statement_cache_none_is_kept<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine_with(1, |builder| builder.statement_cache(false)).await;
    for id in ["e1", "e2"] {
        assert_eq!(deliver(&engine, &Message::new(id, [Step::Effect("e")])).await, Delivered::Applied);
        assert_eq!(deliver(&engine, &Message::new(id, [Step::Effect("e")])).await, Delivered::Duplicate);
        assert_eq!(deliver(&engine, &Message::new("fails", [Step::Fail])).await, Delivered::Failed);
    }
    let escape = Message::new("escapes", [Step::Sql("COMMIT".into()), Step::Fail]);
    assert_eq!(deliver(&engine, &escape).await, Delivered::Refused(ErrorKind::Escaped));
    assert_eq!((db.keys().await, db.effects("e").await), (3, 2));
    let mut conn = engine.pool().acquire().await.unwrap();
    let kept = match S::NAME {
        "PostgreSQL" => S::raw_number(&mut conn, "SELECT count(*) FROM pg_prepared_statements").await,
        _ => i64::try_from(S::cached_statements(&conn)).unwrap(),
    };
    assert_eq!(kept, 0);
}

/// The database goes away in the middle of a handler, and comes back.
pub(super) async fn a_killed_connection_is_survived<S: TestStore>(db: Arc<Db<S>>) {
    let (own, kill) = match S::NAME {
        "PostgreSQL" => ("SELECT pg_backend_pid()::bigint", "SELECT pg_terminate_backend(PID)"),
        "MySQL" => ("SELECT CAST(CONNECTION_ID() AS SIGNED)", "KILL CONNECTION PID"),
        _ => return,
    };
    let engine = db.engine(1).await;
    let kill_it = async || {
        let mut conn = engine.pool().acquire().await.unwrap();
        let pid = S::number(&mut conn, own).await.unwrap();
        drop(conn);
        kill.replace("PID", &pid.to_string())
    };
    let (inside, go_on) = points();
    let steps =
        vec![Step::Effect("e1"), Step::Reach(Arc::clone(&inside)), Step::Await(Arc::clone(&go_on)), Step::Effect("e1")];
    let msg = Arc::new(Message { first_run: Some(steps), ..Message::new("e1", [Step::Effect("e1")]) });
    let kill = kill_it().await;
    let task = tokio::spawn({
        let (engine, msg) = (engine.clone(), Arc::clone(&msg));
        async move { deliver(&engine, &msg).await }
    });
    reached(&inside).await;
    db.run(&kill).await;
    go_on.add_permits(1);
    assert_eq!(task.await.unwrap(), Delivered::Failed);
    assert_eq!((db.keys().await, db.effects("e1").await), (0, 0));
    assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);

    // Killed while idle in the pool: the next delivery does not notice.
    db.run(&kill_it().await).await;
    assert_eq!(deliver(&engine, &Message::new("e2", [Step::Effect("e2")])).await, Delivered::Applied);
    assert_eq!((db.keys().await, db.effects("e2").await), (2, 1));
}
