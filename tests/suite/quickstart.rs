//! `examples/quickstart.rs` as its reader runs it: the figures must come out, whatever a crash interrupts.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data");

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| crate::example::build("quickstart"));

fn quickstart(db: &Path, options: &[&str]) -> Output {
    Command::new(&*PROGRAM).arg("--db").arg(db).args(options).output().unwrap()
}

fn expected() -> Value {
    serde_json::from_str(&fs::read_to_string(format!("{DATA}/stripe-deliveries.expected.json")).unwrap()).unwrap()
}

fn figures(run: &Output) -> Value {
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

/// What each delivery tells of: the event's identity and the cents it brings.
fn events() -> Vec<(String, i64)> {
    let file = fs::read_to_string(format!("{DATA}/stripe-deliveries.ndjson")).unwrap();
    let event = |line: &str| {
        let request: Value = serde_json::from_str(line).unwrap();
        let event: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
        let cents = event["data"]["object"]["amount"].as_i64().unwrap_or(0);
        (event["id"].as_str().unwrap().to_owned(), cents)
    };
    file.lines().map(event).collect()
}

/// What stands in the file, read past the example and the library.
#[derive(Debug, PartialEq)]
struct Stored {
    cents: i64,
    keys: i64,
    acknowledged: i64,
    handed_out: i64,
}

impl Stored {
    async fn read(db: &Path) -> Self {
        let mut conn = SqliteConnectOptions::new().filename(db).connect().await.unwrap();
        let row = "SELECT (SELECT coalesce(sum(cents), 0) FROM account), (SELECT count(*) FROM idem_key), \
                   (SELECT count(*) FROM broker_delivery WHERE acked), (SELECT sum(attempts) FROM broker_delivery)";
        let (cents, keys, acknowledged, handed_out) = sqlx::query_as(row).fetch_one(&mut conn).await.unwrap();
        conn.close().await.unwrap();
        Self { cents, keys, acknowledged, handed_out }
    }

    /// What must stand there once the first deliveries are committed: each of their events once.
    fn after(deliveries: usize) -> Self {
        let mut seen = HashSet::new();
        let cents =
            events().into_iter().take(deliveries).filter(|(id, _)| seen.insert(id.clone())).map(|(_, c)| c).sum();
        let number = i64::try_from(deliveries).unwrap();
        Self { cents, keys: i64::try_from(seen.len()).unwrap(), acknowledged: number, handed_out: number }
    }
}

async fn execute(db: &Path, sql: &'static str) {
    let mut conn: SqliteConnection = SqliteConnectOptions::new().filename(db).connect().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

#[tokio::test]
async fn figures_come_out_of_the_command_in_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("quickstart.db");
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "-p", "idem-examples", "--example", "quickstart", "--", "--json", "--db"])
        .arg(&db)
        .output()
        .unwrap();

    assert_eq!(figures(&run), expected());
    let stored = Stored::read(&db).await;
    assert_eq!(stored, Stored::after(179));
    assert_eq!(Value::from(stored.cents), expected()["cents_applied_once"]);
    assert_eq!(Value::from(stored.keys), expected()["events"]);
}

#[cfg(unix)]
#[tokio::test]
async fn figures_survive_a_crash_between_commit_and_acknowledgement() {
    use std::os::unix::process::ExitStatusExt;

    for crash in [1, 100, 179] {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("quickstart.db");

        let crashed = quickstart(&db, &["--json", "--crash", &crash.to_string()]);
        assert_eq!(crashed.status.signal(), Some(9), "at {crash}: {}", String::from_utf8_lossy(&crashed.stderr));
        assert!(crashed.stdout.is_empty(), "at {crash}");
        let committed = Stored::after(crash);
        let unacknowledged = Stored { acknowledged: committed.acknowledged - 1, ..committed };
        assert_eq!(Stored::read(&db).await, unacknowledged, "at {crash}");

        assert_eq!(figures(&quickstart(&db, &["--json"])), expected(), "at {crash}");
        let all = Stored::after(179);
        assert_eq!(Stored::read(&db).await, Stored { handed_out: all.handed_out + 1, ..all }, "at {crash}");

        let table = String::from_utf8(quickstart(&db, &[]).stdout).unwrap();
        assert!(table.contains("\nredelivered     1 "), "at {crash}: {table}");
    }
}

#[tokio::test]
async fn a_failure_is_not_acknowledged_and_the_next_run_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("quickstart.db");
    let nothing = folder.path().join("nothing.ndjson");
    fs::write(&nothing, "").unwrap();
    assert!(quickstart(&db, &["--file", nothing.to_str().unwrap()]).status.success());
    execute(
        &db,
        "CREATE TRIGGER closed BEFORE INSERT ON account WHEN new.id = '5' BEGIN SELECT raise(ABORT, 'closed'); END",
    )
    .await;

    let failed = quickstart(&db, &["--json"]);
    let text = String::from_utf8(failed.stderr).unwrap();
    assert_eq!((failed.status.code(), failed.stdout.as_slice()), (Some(1), &b""[..]), "{text}");
    assert!(text.contains("was not acknowledged\n  caused by: ") && text.contains("closed"), "{text}");
    let stored = Stored::read(&db).await;
    let committed = Stored::after(usize::try_from(stored.acknowledged).unwrap());
    assert_eq!(stored, Stored { handed_out: committed.handed_out + 1, ..committed });

    execute(&db, "DROP TRIGGER closed").await;
    assert_eq!(figures(&quickstart(&db, &["--json"])), expected());
}

#[test]
fn bad_input_is_named_before_anything_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("quickstart.db");
    let deliveries = fs::read_to_string(format!("{DATA}/stripe-deliveries.ndjson")).unwrap();
    let broken = folder.path().join("broken.ndjson");
    fs::write(&broken, format!("{}\nnot JSON\n", deliveries.lines().next().unwrap())).unwrap();
    let cases = [
        (&db, ["--file", broken.to_str().unwrap()], "line 2"),
        (&db, ["--file", "/nowhere/deliveries.ndjson"], "/nowhere/deliveries.ndjson"),
        (&db, ["--crash", "180"], "no delivery 180"),
        (&folder.path().join("nowhere/quickstart.db"), ["--crash", "1"], "nowhere/quickstart.db cannot be used"),
    ];
    for (db, options, named) in cases {
        let run = quickstart(db, &options);
        let text = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{text}");
        assert!(text.contains("error: ") && text.contains(named), "{text}");
    }
    assert!(!db.exists());
}
