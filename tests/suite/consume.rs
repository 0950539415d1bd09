//! The examples of consumers, as their reader runs them, and killed at any moment. [B28]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use uuid::Uuid;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data");

/// The runs of one example on one database and one queue.
struct Runs {
    program: PathBuf,
    folder: tempfile::TempDir,
    queue: String,
}

impl Runs {
    fn of(example: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let queue = format!("idem-test-{}", Uuid::new_v4().simple());
        Self { program: crate::example::build(example), folder, queue }
    }

    fn start(&self, options: &[&str]) -> Child {
        let mut command = Command::new(&self.program);
        command.arg("--db").arg(self.db()).arg("--json").args(options);
        if !self.queue.is_empty() {
            command.args(["--queue", &self.queue]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn to_the_end(&self, options: &[&str]) -> Output {
        self.start(options).wait_with_output().unwrap()
    }

    /// What it prints at its end.
    fn figures(&self, options: &[&str]) -> Value {
        let run = self.to_the_end(options);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_slice(&run.stdout).unwrap()
    }

    /// Starts it, and kills it once a number of the judge's is so large.
    async fn killed_when(&self, sql: &'static str, reached: i64, options: &[&str]) {
        let mut run = self.start(options);
        while self.number(sql).await.unwrap_or(0) < reached {
            assert_eq!(run.try_wait().unwrap(), None, "it ended before it could be killed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        run.kill().unwrap();
        run.wait().unwrap();
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("test.db")
    }

    async fn number(&self, sql: &'static str) -> Option<i64> {
        let mut conn = SqliteConnectOptions::new().filename(self.db()).connect().await.ok()?;
        sqlx::query_scalar(sql).fetch_one(&mut conn).await.ok()
    }
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(format!("{DATA}/stripe-deliveries.expected.json")).unwrap()).unwrap()
}

const SENT: &str = "SELECT count(*) FROM sent";
const APPLIED: &str = "SELECT count(*) FROM idem_key";

pub(super) async fn killed_between_the_commit_and_the_ack_the_figures_are_the_same(example: &str) {
    for (crash, batch) in [("1", "1"), ("90", "7"), ("179", "1")] {
        let runs = Runs::of(example);
        let run = runs.to_the_end(&["--crash", crash, "--batch", batch]);
        assert_eq!(run.status.code(), None, "{}", String::from_utf8_lossy(&run.stderr));
        assert_eq!(runs.figures(&[]), expected());
        assert_eq!(runs.number("SELECT sum(cents) FROM account").await, Some(3_430_916));
    }
    let run = Runs::of(example).to_the_end(&["--crash", "180"]);
    assert!(String::from_utf8_lossy(&run.stderr).contains("no delivery 180 to crash at"));
}

pub(super) async fn killed_while_it_sends_or_consumes_the_figures_are_the_same(example: &str) {
    let runs = Runs::of(example);
    for (sql, reached) in [(SENT, 60), (APPLIED, 5), (APPLIED, 120)] {
        runs.killed_when(sql, reached, &[]).await;
    }
    assert_eq!(runs.number(SENT).await, Some(179));
    assert_eq!(runs.figures(&[]), expected());
}

/// 2,000 deliveries of 1,500 events, in batches.
pub(super) async fn killed_twice_among_thousands_each_event_is_applied_once(example: &str) {
    let runs = Runs::of(example);
    let file = runs.folder.path().join("deliveries.ndjson");
    let lines = (0..2_000).map(|number| {
        let payment = json!({ "amount": 100, "metadata": { "account": "acct" } });
        let event = json!({
            "id": format!("evt_{}", number % 1_500),
            "type": "payment_intent.succeeded",
            "data": { "object": payment },
        });
        format!("{}\n", json!({ "body": event.to_string() }))
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let options = ["--batch", "20", "--file", file.to_str().unwrap()];
    for reached in [400, 1_100] {
        runs.killed_when(APPLIED, reached, &options).await;
    }
    let figures = runs.figures(&options);
    assert_eq!((&figures["deliveries"], &figures["events"]), (&json!(2_000), &json!(1_500)));
    assert_eq!(runs.number("SELECT cents FROM account").await, Some(150_000));
}

/// One test per way to die, for the example of each broker.
macro_rules! survives {
    ($module:ident, $example:literal, $service:literal) => {
        survives!($module, $example, $service:
            killed_between_the_commit_and_the_ack_the_figures_are_the_same
            killed_while_it_sends_or_consumes_the_figures_are_the_same
            killed_twice_among_thousands_each_event_is_applied_once
        );
    };
    ($module:ident, $example:literal, $service:literal: $($death:ident)*) => {
        mod $module {$(
            #[tokio::test]
            async fn $death() {
                if !idem_tests::without_server($service) {
                    super::$death($example).await;
                }
            }
        )*}
    };
}

survives!(database, "consume_database", "sqlite");
#[cfg(feature = "rabbitmq")]
survives!(rabbitmq, "consume_rabbitmq", "rabbitmq");
#[cfg(feature = "nats")]
survives!(nats, "consume_nats", "nats");
#[cfg(feature = "redis")]
survives!(redis, "consume_redis", "redis");
#[cfg(feature = "kafka")]
survives!(kafka, "consume_kafka", "kafka");
#[cfg(feature = "sqs")]
survives!(sqs, "consume_sqs", "sqs");

/// At most once: a crash loses what was in the air, and draws nothing twice.
#[tokio::test]
async fn what_is_acknowledged_first_is_lost_and_never_doubled() {
    let runs = || Runs { queue: String::new(), ..Runs::of("telemetry_collector") };
    let figures = |runs: &Runs| {
        let report = runs.figures(&[]);
        ["sent", "drawn", "drawn_twice", "lost"].map(|name| report[name].as_i64().unwrap())
    };
    assert_eq!(figures(&runs()), [500, 500, 0, 0]);

    let runs = runs();
    let run = runs.to_the_end(&["--crash", "100"]);
    assert_eq!(run.status.code(), None, "{}", String::from_utf8_lossy(&run.stderr));
    let [sent, drawn, twice, lost] = figures(&runs);
    assert_eq!((sent, drawn + lost, twice), (500, 500, 0));
    // As many as a consumer handles at once, at most.
    assert!((1..=8).contains(&lost), "{lost}");
    assert_eq!(runs.number("SELECT count(*) FROM point").await, Some(drawn));
}
