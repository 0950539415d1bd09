//! `doctor`: what is broken on purpose is found.

use serde_json::Value;

use super::Db;

const DAY: i64 = 86_400;

/// The findings of one check, beside the one that the example always has.
fn findings(db: &Db, check: &str) -> Vec<Value> {
    let document = db.run(&["doctor", "--json"]).json();
    let findings = document["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["check"] == check).cloned().collect()
}

#[tokio::test]
async fn undeclared_redelivery_is_the_only_finding_of_a_sound_database() {
    let db = Db::migrated();
    let document = db.run(&["doctor", "--json"]).exits(1).json();
    let [only] = document["findings"].as_array().unwrap().as_slice() else { panic!("{document}") };
    assert_eq!((&only["check"], &only["severity"]), (&"redelivery".into(), &"warning".into()));
    assert_eq!(only["handler"], "announce-parcel");
    for field in ["what", "means", "action"] {
        assert!(!only[field].as_str().unwrap().is_empty());
    }
    let there = document["database_time"].as_str().unwrap();
    assert!((db.number(&format!("SELECT unixepoch() - unixepoch('{there}')")).await).abs() < 60);
    let text = db.run(&["doctor"]).exits(1).says("warning (redelivery)").says("means: ").says("to do: ").out;
    assert!(!text.contains('\x1b'), "{text}");
}

#[tokio::test]
async fn missing_indexes_are_found() {
    let db = Db::migrated();
    assert_eq!(findings(&db, "index").len(), 0);
    db.execute("DROP INDEX idem_key_age").await;
    let found = findings(&db, "index");
    assert_eq!((found.len(), &found[0]["severity"]), (1, &"warning".into()));

    db.execute(
        "CREATE TABLE copy AS SELECT * FROM idem_key; DROP TABLE idem_key; ALTER TABLE copy RENAME TO idem_key;
         CREATE INDEX idem_key_age ON idem_key (handler, claimed_at);
         CREATE UNIQUE INDEX some_keys ON idem_key (handler, event_key) WHERE handler = 'credit-account'",
    )
    .await;
    let found = findings(&db, "index");
    assert_eq!((found.len(), &found[0]["severity"]), (1, &"error".into()), "{found:?}");
}

#[tokio::test]
async fn what_nodes_have_recorded_is_compared_with_the_program() {
    let db = Db::migrated();
    db.recorded("default", "credit-account", "event.id", 40 * DAY, 0).await;
    db.recorded("default", "announce-parcel", "event.order", 14 * DAY, 13 * DAY).await;
    db.recorded("default", "gone", "msg.id", DAY, 0).await;
    db.recorded("shop", "credit-account", "event.id", 35 * DAY, 0).await;
    db.recorded("shop", "sell", "event.id", 35 * DAY, 0).await;

    let document = db.run(&["doctor", "--json"]).exits(1).json();
    let found: Vec<_> = document["findings"].as_array().unwrap().iter().collect();
    let seen = |check: &str, handler: &str, severity: &str| {
        found.iter().any(|f| f["check"] == check && f["handler"] == handler && f["severity"] == severity)
    };
    assert!(seen("retention", "credit-account", "warning"), "{document}");
    assert!(seen("key", "announce-parcel", "error"), "{document}");
    assert!(seen("duplicate_age", "announce-parcel", "warning"), "{document}");
    assert!(seen("orphan", "gone", "warning"), "{document}");
    assert!(seen("shared_name", "credit-account", "error"), "{document}");
    // These, and the redelivery that nobody declared.
    assert_eq!(found.len(), 6, "{document}");
    let severities: Vec<_> = found.iter().map(|finding| finding["severity"].as_str().unwrap()).collect();
    assert!(severities.is_sorted(), "{severities:?}");
}

#[tokio::test]
async fn a_purge_that_lags_is_found_unless_it_is_held() {
    let db = Db::migrated();
    db.key("credit-account", "1/s:a", 35 * DAY + 600).await;
    assert_eq!(findings(&db, "purge_lag").len(), 0);
    db.key("credit-account", "1/s:b", 36 * DAY).await;
    let found = findings(&db, "purge_lag");
    assert_eq!((found.len(), &found[0]["severity"]), (1, &"warning".into()));
    db.run(&["hold", "--reason", "replay", "--for", "1h"]).exits(0);
    assert_eq!(findings(&db, "purge_lag")[0]["severity"], "note");
    assert_eq!(findings(&db, "hold").len(), 1);
}

#[tokio::test]
async fn asking_changes_nothing() {
    let db = Db::migrated();
    for args in [&["doctor"][..], &["show", "a"], &["purge", "--dry-run"], &["holds"]] {
        db.run(args);
    }
    assert_eq!(db.number("SELECT count(*) FROM idem_handler").await, 0);
}
