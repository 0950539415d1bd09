//! Processes that die, and processes that compete.
//!
//! The other process is this test binary, running the ignored test [`worker`].

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use idem_runtime::Engine;
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver, say};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const DELIVERIES: usize = 16;

/// A worker process, killed when dropped.
struct Worker {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Worker {
    fn start<S: TestStore>(db: &Db<S>, role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "conformance::processes::worker", "--ignored", "--nocapture"])
            .env("IDEM_WORKER_STORE", S::NAME)
            .env("IDEM_WORKER_PLACE", S::address(db.place()))
            .env("IDEM_WORKER_ROLE", role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits for a line that ends so; libtest writes before it.
    fn wait_for(&mut self, expected: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(expected) {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the worker ended before it said `{expected}`");
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }
}

/// [B28] With `kill -9`, at each step of a delivery.
pub(super) async fn killed_anywhere_the_redelivery_completes_once<S: TestStore>(db: Arc<Db<S>>) {
    for (role, line, redelivered) in [
        ("begin", "begun", Delivered::Applied),
        ("claimed", "claimed", Delivered::Applied),
        ("effect", "effect", Delivered::Applied),
        ("committed", "committed", Delivered::Duplicate),
    ] {
        db.run("DELETE FROM idem_key").await;
        db.run("DELETE FROM effect").await;
        let engine = db.engine(2).await;
        let go_on = Arc::new(Semaphore::new(0));
        let mut holder = None;
        if role == "begin" {
            // Holds the key, so that the worker comes no further than its claim, and gives it up again.
            let inside = Arc::new(Semaphore::new(0));
            let steps = [Step::Reach(Arc::clone(&inside)), Step::Await(Arc::clone(&go_on)), Step::Fail];
            let (engine, msg) = (engine.clone(), Message::new("e1", steps));
            holder = Some(tokio::spawn(async move { deliver(&engine, &msg).await }));
            inside.acquire().await.unwrap().forget();
        }
        let mut worker = Worker::start(&db, role);
        worker.wait_for(line);
        worker.kill();
        go_on.add_permits(1);
        if let Some(holder) = holder {
            assert_eq!(holder.await.unwrap(), Delivered::Failed);
        }
        let msg = Message::new("e1", [Step::Effect("e1")]);
        assert_eq!(deliver(&engine, &msg).await, redelivered, "killed at {role}");
        assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);
        assert_eq!((db.keys().await, db.effects("e1").await), (1, 1), "killed at {role}");
    }
}

/// [B23]
pub(super) async fn two_processes_apply_one_event_once<S: TestStore>(db: Arc<Db<S>>) {
    let mut workers = [Worker::start(&db, "storm"), Worker::start(&db, "storm")];
    for worker in &mut workers {
        worker.wait_for("ready");
    }
    for worker in &mut workers {
        worker.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut applied = 0;
    for worker in &mut workers {
        let mut rest = String::new();
        worker.lines.read_to_string(&mut rest).unwrap();
        assert!(worker.child.wait().unwrap().success(), "{rest}");
        applied += rest.matches("storm: Applied").count();
        assert_eq!(rest.matches("storm: ").count(), DELIVERIES, "{rest}");
        assert_eq!(rest.matches("storm: Duplicate").count() + rest.matches("storm: Applied").count(), DELIVERIES);
    }
    assert_eq!((applied, db.keys().await, db.effects("e1").await), (1, 1, 1));
}

/// [B36] With `kill -9`, in the middle of a pass: what is gone was old enough, and the next pass does the rest.
pub(super) async fn a_purge_that_is_killed_leaves_nothing_wrong<S: TestStore>(db: Arc<Db<S>>) {
    const DAY: i64 = 86_400;
    super::purge::keys(&db, "perform", 2_000, 8 * DAY).await;
    super::purge::keys(&db, "perform", 100, 6 * DAY).await;
    let mut worker = Worker::start(&db, "purge");
    worker.wait_for("purging");
    while db.keys().await > 2_050 {
        tokio::task::yield_now().await;
    }
    worker.kill();
    let left = db.keys().await;
    assert!((101..2_100).contains(&left), "{left} keys were left");
    let engine = db.engine(1).await;
    let purger = idem_runtime::Purger::new(&engine).pause(std::time::Duration::ZERO);
    // The dead node's right to purge lasts for a minute more.
    assert_eq!(purger.pass().await.unwrap().stopped, Some(idem_runtime::Stopped::Elsewhere));
    db.run(&format!("UPDATE idem_lease SET until_at = {}", super::purge::ago::<S>(1))).await;
    assert_eq!(purger.pass().await.unwrap().stopped, None);
    assert_eq!(db.keys().await, 100);
}

#[test]
#[ignore = "the other process of these tests, which start it"]
fn worker() {
    let setting = |name| std::env::var(name).unwrap();
    let (place, role) = (setting("IDEM_WORKER_PLACE"), setting("IDEM_WORKER_ROLE"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        match setting("IDEM_WORKER_STORE").as_str() {
            "SQLite" => work::<sqlx::Sqlite>(&place, &role).await,
            #[cfg(feature = "databases")]
            "PostgreSQL" => work::<sqlx::Postgres>(&place, &role).await,
            #[cfg(feature = "databases")]
            "MySQL" => work::<sqlx::MySql>(&place, &role).await,
            store => panic!("{store}"),
        }
    });
}

async fn work<S: TestStore>(place: &str, role: &str) {
    let engine = Engine::start(S::open(&S::attach(place), 8, "").await).await.unwrap();
    let never = || Step::Await(Arc::new(Semaphore::new(0)));
    let steps = match role {
        "begin" => {
            say("begun");
            vec![]
        }
        "claimed" => vec![Step::Say("claimed"), never()],
        "effect" => vec![Step::Effect("e1"), Step::Say("effect"), never()],
        "committed" => vec![Step::Effect("e1")],
        "storm" => return storm(&engine).await,
        "purge" => {
            say("purging");
            let purger = idem_runtime::Purger::new(&engine).batch_size(10).pause(std::time::Duration::from_millis(20));
            purger.pass().await.unwrap();
            vec![]
        }
        role => panic!("{role}"),
    };
    deliver(&engine, &Message::new("e1", steps)).await;
    say("committed");
    std::future::pending::<()>().await;
}

async fn storm<S: TestStore>(engine: &Engine<S>) {
    say("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..DELIVERIES {
        let engine = engine.clone();
        tasks.spawn(async move { deliver(&engine, &Message::new("e1", [Step::Effect("e1")])).await });
    }
    for ended in tasks.join_all().await {
        say(&format!("storm: {ended:?}"));
    }
}
