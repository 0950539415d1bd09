//! The examples of consumers, as their reader runs them, and killed at any moment. [B28]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data");

static DATABASE: LazyLock<std::path::PathBuf> = LazyLock::new(|| crate::example::build("consume_database", &[]));

fn start(program: &Path, db: &Path, options: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.arg("--db").arg(db).arg("--json").args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs to the end, and compares the figures with those that must come out.
fn goes_on(program: &Path, db: &Path) {
    let run = start(program, db, &[]).wait_with_output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let expected = std::fs::read(format!("{DATA}/stripe-deliveries.expected.json")).unwrap();
    let figures = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
    assert_eq!(figures(&run.stdout), figures(&expected));
}

async fn number(db: &Path, sql: &'static str) -> Option<i64> {
    let mut conn = SqliteConnectOptions::new().filename(db).connect().await.ok()?;
    sqlx::query_scalar(sql).fetch_one(&mut conn).await.ok()
}

#[tokio::test]
async fn killed_between_the_commit_and_the_ack_the_figures_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for crash in ["1", "90", "179"] {
        let db = folder.path().join(format!("{crash}.db"));
        let run = start(&DATABASE, &db, &["--crash", crash]).wait_with_output().unwrap();
        assert_eq!(run.status.code(), None, "{}", String::from_utf8_lossy(&run.stderr));
        assert!(number(&db, "SELECT count(*) FROM idem_queue").await.unwrap() > 0);
        goes_on(&DATABASE, &db);
        assert_eq!(number(&db, "SELECT count(*) FROM idem_queue").await, Some(0));
        assert_eq!(number(&db, "SELECT sum(cents) FROM account").await, Some(3_430_916));
    }
    let run = start(&DATABASE, &folder.path().join("never.db"), &["--crash", "180"]).wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&run.stderr).contains("no delivery 180 to crash at"));
}

#[tokio::test]
async fn killed_while_it_sends_or_consumes_the_figures_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("killed.db");
    // After so many have been sent, and after so many have been applied.
    let moments = [
        ("SELECT count(*) FROM sent", 60),
        ("SELECT count(*) FROM idem_key", 5),
        ("SELECT count(*) FROM idem_key", 50),
        ("SELECT count(*) FROM idem_key", 120),
    ];
    for (sql, reached) in moments {
        let mut run = start(&DATABASE, &db, &[]);
        while number(&db, sql).await.unwrap_or(0) < reached {
            assert_eq!(run.try_wait().unwrap(), None, "it ended before it could be killed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let sent = number(&db, "SELECT count(*) FROM sent").await;
    assert_eq!(sent, Some(179));
    goes_on(&DATABASE, &db);
    assert_eq!(number(&db, "SELECT count(*) FROM idem_queue").await, Some(0));
}

/// At most once: a crash loses what was in the air, and draws nothing twice.
#[tokio::test]
async fn what_is_acknowledged_first_is_lost_and_never_doubled() {
    let program = crate::example::build("telemetry_collector", &[]);
    let folder = tempfile::tempdir().unwrap();
    let figures = |db: &Path| {
        let run = start(&program, db, &[]).wait_with_output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let report: Value = serde_json::from_slice(&run.stdout).unwrap();
        ["sent", "drawn", "drawn_twice", "lost"].map(|name| report[name].as_i64().unwrap())
    };
    assert_eq!(figures(&folder.path().join("calm.db")), [500, 500, 0, 0]);

    let db = folder.path().join("crash.db");
    let run = start(&program, &db, &["--crash", "100"]).wait_with_output().unwrap();
    assert_eq!(run.status.code(), None, "{}", String::from_utf8_lossy(&run.stderr));
    let [sent, drawn, twice, lost] = figures(&db);
    assert_eq!((sent, drawn + lost, twice), (500, 500, 0));
    // As many as a consumer handles at once, at most.
    assert!((1..=8).contains(&lost), "{lost}");
    assert_eq!(number(&db, "SELECT count(*) FROM point").await, Some(drawn));
}
