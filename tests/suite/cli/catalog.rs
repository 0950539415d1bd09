//! `catalog`: written, compared, and not overwritten where that would forget keys.

use std::fs;

use super::{Db, run_in};

#[test]
fn every_form_is_printed_and_written() {
    let db = Db::empty();
    let markdown = db.run(&["catalog"]).exits(0).says("credit-account").out;
    assert_eq!(db.run(&["catalog", "--format", "markdown"]).exits(0).out, markdown);
    let json = db.run(&["catalog", "--format", "json"]).exits(0).out;
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["handlers"].as_array().unwrap().len(), 4);
    assert_eq!(db.run(&["catalog", "--json"]).exits(0).out, json);
    let html = db.run(&["catalog", "--format", "html"]).exits(0).says("<html").out;

    for (format, text) in [("markdown", markdown), ("json", json), ("html", html)] {
        let file = db.path(format);
        let args = ["catalog", "--format", format, "--output", format];
        db.run(&args).exits(0).says("was written");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        db.run(&args).exits(0).says("was up to date");
        let written = db.run(&[&args[..], &["--json"]].concat()).exits(0).json();
        assert_eq!((&written["file"], &written["changed"]), (&format.into(), &false.into()));
    }
    assert!(!db.file().exists());
}

#[tokio::test]
async fn figures_are_what_the_database_says_and_are_not_committed() {
    let db = Db::migrated();
    for number in 0..3 {
        db.key("credit-account", &format!("1/s:{number}"), 36 * 86_400).await;
    }
    db.key("credit-account", "1/s:new", 60).await;
    let json = db.run(&["catalog", "--figures", "--json"]).exits(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let figures = json["figures"].as_array().unwrap();
    let credit = figures.iter().find(|figures| figures["handler"] == "credit-account").unwrap();
    assert_eq!((&credit["rows"], &credit["keys_per_day"]), (&4.into(), &1.0.into()), "{credit}");
    let lag = credit["purge_lag_secs"].as_i64().unwrap();
    assert!((86_400 - 300..86_400 - 240).contains(&lag), "{credit}");
    db.run(&["catalog", "--figures", "--output", "handlers.md"]).exits(2).complains("has no figures");
    db.run(&["catalog", "--figures", "--check", "handlers.md"]).exits(2);
}

#[test]
fn drift_is_1_and_a_forgotten_key_is_not_overwritten() {
    let db = Db::empty();
    let file = db.path("handlers.md");
    let check = ["catalog", "--check", "handlers.md"];
    db.run(&check).exits(1).says("there is no such file");
    db.run(&["catalog", "--output", "handlers.md"]).exits(0);
    db.run(&check).exits(0).says("up to date");

    let text = fs::read_to_string(&file).unwrap();
    let longer = text.replace("retention: 35d", "retention: 40d");
    fs::write(&file, longer.replace("\"retention_secs\":3024000", "\"retention_secs\":3456000")).unwrap();
    let drift = db.run(&[&check[..], &["--json"]].concat()).exits(1).json();
    assert_eq!(drift["drifts"][0]["kind"], "stale", "{drift}");
    db.run(&check).exits(1).says("SHORTENED from 40d to 35d");
    db.run(&["catalog", "--output", "handlers.md"]).exits(0);

    let renamed = text.replace("credit-account", "pay-account");
    fs::write(&file, &renamed).unwrap();
    let drift = db.run(&[&check[..], &["--json"]].concat()).exits(1).json();
    assert_eq!(
        (&drift["drifts"][0]["kind"], &drift["drifts"][0]["handler"]),
        (&"renamed".into(), &"credit-account".into())
    );
    db.run(&["catalog", "--output", "handlers.md"]).exits(1).says("name = \"pay-account\"");
    assert_eq!(fs::read_to_string(&file).unwrap(), renamed);

    fs::write(&file, format!("<<<<<<< ours\n{text}")).unwrap();
    db.run(&check).exits(1).says("merge conflict");
}

#[test]
fn a_file_that_cannot_be_written_is_5() {
    let db = Db::empty();
    let args = ["catalog", "--format", "html", "--output", "nowhere/handlers.html"];
    run_in(db.folder.path(), "sqlite:none", &args).exits(5).complains("nowhere/handlers.html");
}
