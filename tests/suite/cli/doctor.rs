//! `doctor`: what is broken on purpose is found.

use serde_json::Value;

use super::Db;

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
