//! Keys go when they are older than their retention, and not before. [B32 to B39]

#![allow(clippy::disallowed_methods, reason = "the events' own times are the tests' to make up")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use idem_runtime::{Engine, Pass, Purger, Stopped, holds, place_hold, release_hold};
use idem_tests::{Db, Delivered, Logs, Message, Step, TestStore, deliver};
use tracing::Level;

use super::results::ship;

pub(super) const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 24 * HOUR;

/// How much longer than the retention a key is kept, so that an event from a fast clock is not accepted again.
const TOLERANCE: i64 = 300;

/// A moment of the database's, so many seconds ago.
pub(super) fn ago<S: TestStore>(secs: i64) -> String {
    match S::NAME {
        "SQLite" => format!("CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) - {secs} * 1000"),
        "PostgreSQL" => format!("clock_timestamp() - interval '{secs} seconds'"),
        _ => format!("UTC_TIMESTAMP(6) - INTERVAL {secs} SECOND"),
    }
}

/// Writes keys of this age beside the library.
pub(crate) async fn keys<S: TestStore>(db: &Db<S>, handler: &str, count: usize, secs: i64) {
    let digits = (0..10).map(|digit| format!("SELECT {digit} AS d")).collect::<Vec<_>>().join(" UNION ALL ");
    let number = "a.d + 10 * b.d + 100 * c.d + 1000 * e.d";
    let text = match S::NAME {
        "SQLite" => format!("CAST('{secs}/' || ({number}) AS BLOB)"),
        "PostgreSQL" => format!("convert_to('{secs}/' || ({number}), 'UTF8')"),
        _ => format!("CONCAT('{secs}/', {number})"),
    };
    let age = ago::<S>(secs);
    db.run(&format!(
        "INSERT INTO idem_key (handler, event_key, claimed_at, claim) SELECT '{handler}', {text}, {age}, 0 \
         FROM ({digits}) a, ({digits}) b, ({digits}) c, ({digits}) e WHERE {number} < {count}"
    ))
    .await;
}

/// [B37] 20,000 keys of two handlers, half of them past their retention; says how many of each handler.
pub(crate) async fn keys_of_two_handlers<S: TestStore>(db: &Db<S>) -> u64 {
    for (handler, retention) in [("perform", 7 * DAY), ("tests.greedy", DAY)] {
        keys(db, handler, 5_000, retention + HOUR).await;
        keys(db, handler, 5_000, HOUR).await;
    }
    5_000
}

pub(super) async fn kept<S: TestStore>(db: &Db<S>, handler: &str) -> i64 {
    db.number(&format!("SELECT count(*) FROM idem_key WHERE handler = '{handler}'")).await
}

/// What an application's node wrote down when it started.
pub(super) async fn recorded<S: TestStore>(db: &Db<S>, application: &str, handler: &str, retention_secs: i64) {
    let now = ago::<S>(0);
    db.run(&format!(
        "INSERT INTO idem_handler (application, handler, key_text, retention_secs, first_seen_at, last_seen_at) \
         VALUES ('{application}', '{handler}', 'msg.id', {retention_secs}, {now}, {now})"
    ))
    .await;
}

pub(crate) fn purger<S: TestStore>(engine: &Engine<S>) -> Purger<S> {
    Purger::new(engine).pause(Duration::ZERO).interval(Duration::from_secs(1))
}

pub(crate) fn purged(pass: &Pass, handler: &str) -> u64 {
    assert!(pass.stopped.is_none() && pass.failures.is_empty(), "{pass:?}");
    pass.handlers.iter().find(|purged| purged.handler == handler).unwrap().purged
}

/// [B32, B34, B37, B38] In batches, each handler by its own retention and the database's clock, wherever the session
/// thinks it is. `perform` keeps its keys for seven days, `tests.greedy` for one.
pub(super) async fn only_keys_past_their_own_retention_go<S: TestStore>(db: Arc<Db<S>>) {
    for (handler, retention) in [("perform", 7 * DAY), ("tests.greedy", DAY)] {
        keys(&db, handler, 2_345, retention + TOLERANCE + 60).await;
        keys(&db, handler, 321, retention + TOLERANCE - 60).await;
    }
    keys(&db, "of.another.application", 5, 1_000 * DAY).await;
    let elsewhere = match S::NAME {
        "SQLite" => "SELECT 1",
        "PostgreSQL" => "SET TIME ZONE '+13'",
        _ => "SET time_zone = '-08:00'",
    };
    let engine = Engine::start(db.pool_with(2, elsewhere).await).await.unwrap();
    let dry = purger(&engine).dry_run().await.unwrap();
    assert_eq!((purged(&dry, "perform"), dry.purged(), db.keys().await), (2_345, 4_690, 2 * 2_666 + 5));
    let pass = purger(&engine).batch_size(1_000).pass().await.unwrap();
    assert_eq!((purged(&pass, "perform"), purged(&pass, "tests.greedy"), pass.orphans().count()), (2_345, 2_345, 0));
    assert_eq!((kept(&db, "perform").await, kept(&db, "tests.greedy").await), (321, 321));
    assert_eq!(kept(&db, "of.another.application").await, 5);
    assert_eq!(purger(&engine).pass().await.unwrap().purged(), 0);
}

/// A handler that is gone keeps its last retention, another application's is not touched, and whoever wants a key longest
/// gets it.
pub(super) async fn retention_is_that_of_whoever_wants_the_key_longest<S: TestStore>(db: Arc<Db<S>>) {
    recorded(&db, "default", "gone", HOUR).await;
    db.run(&format!("UPDATE idem_handler SET last_seen_at = {}", ago::<S>(DAY + 60))).await;
    recorded(&db, "default", "of.another.program", HOUR).await;
    keys(&db, "of.another.program", 2, 2 * HOUR).await;
    recorded(&db, "other", "foreign", HOUR).await;
    recorded(&db, "other", "perform", 30 * DAY).await;
    for handler in ["gone", "foreign"] {
        keys(&db, handler, 3, 2 * HOUR).await;
        keys(&db, handler, 4, HOUR).await;
    }
    keys(&db, "perform", 6, 10 * DAY).await;
    let engine = db.engine(1).await;
    let (logs, _guard) = Logs::capture();
    let pass = purger(&engine).pass().await.unwrap();
    let orphans: Vec<_> = pass.orphans().map(|orphan| (orphan.handler.as_str(), orphan.purged)).collect();
    assert_eq!((orphans, kept(&db, "of.another.program").await), (vec![("gone", 3)], 0));
    let seen =
        format!("SELECT count(*) FROM idem_handler WHERE handler = 'perform' AND last_seen_at < {}", ago::<S>(HOUR));
    db.run(&format!("UPDATE idem_handler SET last_seen_at = {} WHERE handler = 'perform'", ago::<S>(5 * HOUR))).await;
    purger(&engine).pass().await.unwrap();
    assert_eq!(
        db.number(&format!("{seen} AND application = 'default'")).await,
        0,
        "the node says again that it is here"
    );
    assert_eq!((kept(&db, "gone").await, kept(&db, "foreign").await, kept(&db, "perform").await), (4, 7, 6));
    assert!(logs.up_to(Level::WARN).iter().any(|line| line.contains("handler=\"gone\"") && line.contains("purged=3")));
}

/// A rolling deploy: as long as a node of the release with the longer retention may still run, it gets its way, and the
/// dry run says what is to come. A day after it last said so, the number is in the log before they go, and only once.
pub(super) async fn a_shorter_retention_waits_for_the_old_nodes_and_is_loud<S: TestStore>(db: Arc<Db<S>>) {
    recorded(&db, "default", "perform", 30 * DAY).await;
    keys(&db, "perform", 42, 10 * DAY).await;
    let engine = db.engine(1).await;
    for pass in [purger(&engine).dry_run().await.unwrap(), purger(&engine).pass().await.unwrap()] {
        assert_eq!(purged(&pass, "perform"), 0);
        let exposed = pass.handlers.iter().find(|it| it.handler == "perform").unwrap().exposed.unwrap();
        let days = |length: Duration| length.as_secs() / DAY.unsigned_abs();
        assert_eq!((days(exposed.was), days(exposed.is), exposed.keys), (30, 7, 42));
        assert!(exposed.goes_in > Duration::from_secs(23 * 3_600), "{exposed:?}");
    }
    assert_eq!(kept(&db, "perform").await, 42);

    // Restarts change nothing of that.
    drop(db.engine(1).await);
    db.run(&format!("UPDATE idem_handler SET longest_seen_at = {}", ago::<S>(DAY + 60))).await;
    let (logs, _guard) = Logs::capture();
    let engine = db.engine(1).await;
    assert_eq!(purged(&purger(&engine).dry_run().await.unwrap(), "perform"), 42);
    assert_eq!(logs.up_to(Level::WARN).iter().filter(|line| line.contains("keys=42")).count(), 0);
    assert_eq!(purged(&purger(&engine).pass().await.unwrap(), "perform"), 42);
    let warnings = logs.up_to(Level::WARN);
    let told = ["handler=\"perform\"", "shorter than before", "was=2592000s", "is=604800s", "keys=42", "goes_in=0ns"];
    assert!(warnings.iter().any(|line| told.iter().all(|part| line.contains(part))), "{warnings:#?}");
    let pass = purger(&engine).pass().await.unwrap();
    assert!(pass.handlers.iter().all(|handler| handler.exposed.is_none()), "{pass:?}");
}

/// Another key under the same name forgets what is stored, and the start says so.
pub(super) async fn a_changed_key_is_an_error_in_the_log<S: TestStore>(db: Arc<Db<S>>) {
    recorded(&db, "default", "perform", 7 * DAY).await;
    db.run("UPDATE idem_handler SET key_text = 'msg.number'").await;
    let (logs, _guard) = Logs::capture();
    drop(db.engine(1).await);
    let errors = logs.up_to(Level::ERROR);
    let told = ["handler=\"perform\"", "was=\"msg.number\"", "is=\"msg.id\"", "forgotten"];
    assert!(errors.iter().any(|line| told.iter().all(|part| line.contains(part))), "{errors:#?}");
}

pub(super) async fn a_hold_keeps_every_node_from_purging<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    let (one, other) = (db.engine(1).await, db.engine(1).await);
    let hold = place_hold(&one, "last week is replayed", "maria", Duration::from_secs(600)).await.unwrap();
    for engine in [&one, &other] {
        let pass = purger(engine).pass().await.unwrap();
        let Some(Stopped::Held(found)) = pass.stopped else { panic!("{pass:?}") };
        assert_eq!((found.id, found.reason, found.author), (hold.id.clone(), hold.reason.clone(), hold.author.clone()));
    }
    assert!(release_hold(&other, &hold.id, "jo").await.unwrap());
    assert!(!release_hold(&other, &hold.id, "jo").await.unwrap());
    assert_eq!(db.number("SELECT count(*) FROM idem_hold WHERE released_by = 'jo'").await, 1);

    // One that expired by the database's clock holds no more.
    place_hold(&one, "and once more", "maria", Duration::from_secs(600)).await.unwrap();
    db.run(&format!("UPDATE idem_hold SET expires_at = {}", ago::<S>(1))).await;
    assert_eq!(holds(&one).await.unwrap(), []);
    assert_eq!(purged(&purger(&one).pass().await.unwrap(), "perform"), 10);
    assert!(place_hold(&one, " ", "maria", Duration::from_secs(600)).await.is_err());
}

pub(super) async fn one_node_purges_at_a_time<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    let engine = db.engine(1).await;
    db.run(&format!("UPDATE idem_lease SET holder = 'another node', until_at = {}", ago::<S>(-30))).await;
    assert_eq!(purger(&engine).pass().await.unwrap().stopped, Some(Stopped::Elsewhere));
    assert_eq!(db.keys().await, 10);
    // That node died: its right ends by itself.
    db.run(&format!("UPDATE idem_lease SET until_at = {}", ago::<S>(1))).await;
    assert_eq!(purged(&purger(&engine).pass().await.unwrap(), "perform"), 10);
}

/// [B36] The wait after a start is counted in the database, from the first start since the last pass.
pub(super) async fn nothing_is_purged_right_after_a_start<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    let engine = db.engine(2).await;
    let asked = Arc::new(tokio::sync::Semaphore::new(0));
    let ready = Arc::new(AtomicBool::new(false));
    let caught_up = {
        let (asked, ready) = (Arc::clone(&asked), Arc::clone(&ready));
        move || {
            asked.add_permits(1);
            let ready = ready.load(Ordering::SeqCst);
            Box::pin(std::future::ready(ready)) as idem_runtime::__private::BoxFuture<'static, bool>
        }
    };
    let purging = purger(&engine).caught_up(caught_up).spawn();
    asked.acquire_many(2).await.unwrap().forget();
    assert_eq!(
        (db.keys().await, db.number("SELECT count(*) FROM idem_lease WHERE held_since IS NOT NULL").await),
        (10, 1)
    );
    ready.store(true, Ordering::SeqCst);
    until_none(&db, "SELECT count(*) FROM idem_lease WHERE held_since IS NOT NULL OR last_pass_at IS NULL").await;
    purging.stop().await;
    assert_eq!(db.keys().await, 0);

    // A process that restarts all the time purges once the wait is over, whichever of them began it.
    keys(&db, "perform", 10, 9 * DAY).await;
    db.run(&format!("UPDATE idem_lease SET held_since = {}", ago::<S>(3_601))).await;
    let purging = purger(&engine).start_hold(Duration::from_secs(HOUR.unsigned_abs())).spawn();
    until_none(&db, "SELECT count(*) FROM idem_key").await;
    purging.stop().await;
}

/// The purge says nothing when it is done, so the judge is asked.
pub(crate) async fn until_none<S: TestStore>(db: &Db<S>, count: &str) {
    let none = async {
        while db.number(count).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), none).await.unwrap();
}

/// At no instant is a key gone while its event would still be accepted. `tests.ship` keeps keys for two hours and dates
/// its events; this one was dated five minutes ahead, the most that is accepted.
pub(super) async fn no_key_goes_while_its_event_is_accepted<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let minute = Duration::from_secs(60);
    for (claimed_secs_ago, is_kept) in [(2 * HOUR + TOLERANCE - 5, true), (2 * HOUR + TOLERANCE + 5, false)] {
        db.run("DELETE FROM idem_key").await;
        let dated = SystemTime::now() - Duration::from_secs(claimed_secs_ago.unsigned_abs()) + 5 * minute;
        assert!(ship(&engine, "order 1", &SystemTime::now()).await.unwrap().is_applied());
        db.run(&format!("UPDATE idem_key SET claimed_at = {}", ago::<S>(claimed_secs_ago))).await;
        purger(&engine).pass().await.unwrap();
        assert_eq!(db.keys().await > 0, is_kept);
        let redelivered = ship(&engine, "order 1", &dated).await;
        match redelivered {
            Ok(outcome) => assert!(is_kept && outcome.is_duplicate()),
            Err(failure) => assert_eq!((is_kept, failure.kind()), (false, Some(idem_runtime::ErrorKind::Expired))),
        }
    }
    assert_eq!(db.effects("shipped").await, 2);
}

/// Evidence for a longer or a shorter window, kept across restarts.
pub(super) async fn the_highest_age_of_a_duplicate_is_kept<S: TestStore>(db: Arc<Db<S>>) {
    let age = "SELECT highest_duplicate_age_secs FROM idem_handler WHERE handler = 'perform'";
    for (secs, expected) in [(HOUR, HOUR), (60, HOUR), (2 * HOUR, 2 * HOUR)] {
        let engine = db.engine(1).await;
        let msg = Message::new(format!("e{secs}"), [Step::Effect("e")]);
        assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
        db.run(&format!("UPDATE idem_key SET claimed_at = {}", ago::<S>(secs))).await;
        assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);
        purger(&engine).pass().await.unwrap();
        let highest = db.number(age).await;
        assert!((expected..expected + 30).contains(&highest), "{highest}");
        engine.pool().close().await;
    }
}

/// [B35] The longest retention that can be declared is a date of every database's.
pub(super) async fn the_longest_retention_works<S: TestStore>(db: Arc<Db<S>>) {
    recorded(&db, "default", "gone", 100 * 366 * DAY).await;
    keys(&db, "gone", 3, 100 * DAY).await;
    let engine = db.engine(1).await;
    assert_eq!(purged(&purger(&engine).pass().await.unwrap(), "gone"), 0);
    assert_eq!(kept(&db, "gone").await, 3);
}

/// [B36] A database that is away for one pass.
pub(super) async fn a_pass_that_fails_is_no_end<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 10, 8 * DAY).await;
    let engine = db.engine(1).await;
    db.run("ALTER TABLE idem_key RENAME TO idem_key_away").await;
    let pass = purger(&engine).pass().await.unwrap();
    assert!(!pass.failures.is_empty() && pass.stopped.is_none(), "{pass:?}");
    db.run("ALTER TABLE idem_key_away RENAME TO idem_key").await;
    assert_eq!(purged(&purger(&engine).pass().await.unwrap(), "perform"), 10);
    db.run("ALTER TABLE idem_lease RENAME TO idem_lease_away").await;
    assert!(purger(&engine).pass().await.is_err());
    db.run("ALTER TABLE idem_lease_away RENAME TO idem_lease").await;
    assert_eq!(purger(&engine).pass().await.unwrap().stopped, None);
}
