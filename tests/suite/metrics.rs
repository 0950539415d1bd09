//! The metrics of the feature `metrics`: `docs/telemetry.md` is the contract.

use idem_runtime::Purger;
use idem_tests::{Db, Delivered, Message, Step, deliver};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use sqlx::Sqlite;

#[test]
fn what_happens_is_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(Db::<Sqlite>::test(async |db| {
            let engine = db.engine(1).await;
            let msg = Message::new("e1", [Step::Effect("e1")]);
            assert_eq!(deliver(&engine, &msg).await, Delivered::Applied);
            assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);
            assert_eq!(deliver(&engine, &Message::new("e2", [Step::Fail])).await, Delivered::Failed);
            deliver(&engine, &Message::new("", [])).await;
            db.run("UPDATE idem_key SET claimed_at = 0").await;
            Purger::new(&engine).pass().await.unwrap();
        }));
    });
    let line = |(key, value): (metrics::Key, DebugValue)| {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(count) => count.to_string(),
            DebugValue::Gauge(value) => value.to_string(),
            DebugValue::Histogram(values) => format!("{} values", values.len()),
        };
        format!("{}{{{}}} {value}", key.name(), labels.join(","))
    };
    let all = snapshotter.snapshot().into_vec().into_iter();
    let mut seen: Vec<String> = all.map(|(key, _, _, value)| line((key.into_parts().1, value))).collect();
    seen.retain(|line| !line.contains("handler=") || line.contains("handler=perform"));
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            "idem_claim_seconds{} 3 values",
            "idem_duplicate_age_seconds{handler=perform} 1 values",
            "idem_holds{} 0",
            "idem_orphans{} 0",
            "idem_outcomes_total{handler=perform,outcome=InvalidKey} 1",
            "idem_outcomes_total{handler=perform,outcome=applied} 1",
            "idem_outcomes_total{handler=perform,outcome=duplicate} 1",
            "idem_outcomes_total{handler=perform,outcome=failed} 1",
            "idem_purge_lag_seconds{handler=perform} 0",
            "idem_purge_pass_seconds{} 1 values",
            "idem_purged_total{handler=perform} 1",
        ]
    );
}
