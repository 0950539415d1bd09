//! `migrate`, and what the other commands say without it.

use super::{Db, run_in};

const VERSION: &str = "SELECT max(version) FROM idem_schema WHERE success";

#[tokio::test]
async fn tables_are_created_once_and_seen_by_sql() {
    let db = Db::empty();
    let before = db.run(&["migrate", "--check", "--json"]).exits(1).json();
    assert_eq!((&before["was"], &before["is"]), (&().into(), &().into()), "{before}");

    let made = db.run(&["migrate", "--json"]).exits(0).json();
    let version = db.number(VERSION).await;
    assert_eq!(made["is"], version);
    assert_eq!(made["wanted"], version);
    assert_eq!(db.number("SELECT count(*) FROM idem_key").await, 0);

    db.run(&["migrate"]).exits(0).says("nothing was changed");
    db.run(&["migrate", "--check"]).exits(0);
    assert_eq!(db.number(VERSION).await, version);
}

#[test]
fn without_tables_every_command_says_migrate() {
    let db = Db::empty();
    for args in super::usage::ON_TABLES {
        let run = db.run(args).exits(4).complains("run `migrate`");
        assert!(run.out.is_empty() && run.err.starts_with("error: "), "{run:?}");
        let error = &db.run(&[*args, &["--json"]].concat()).exits(4).json()["error"];
        assert_eq!(error["kind"], "refused", "{args:?}");
        assert!(error["text"].as_str().unwrap().contains("no key is lost"), "{error}");
    }
    db.run(&["doctor"]).exits(1).says("error (schema)").says("run `migrate`");
}

#[tokio::test]
async fn a_migration_that_fails_says_why_and_can_be_run_again() {
    let db = Db::empty();
    db.run(&["migrate", "--check"]).exits(1);
    db.execute("CREATE TABLE idem_hold (mine INTEGER)").await;
    db.run(&["migrate"]).exits(5).complains("idem_hold").complains("run `migrate` again");
    db.run(&["show", "ord_1"]).exits(4);
    db.execute("DROP TABLE idem_hold").await;
    db.run(&["migrate"]).exits(0);
}

#[tokio::test]
async fn newer_tables_are_left_alone() {
    let db = Db::migrated();
    let newer = db.number(VERSION).await + 1;
    db.execute(&format!(
        "INSERT INTO idem_schema SELECT {newer}, 'later', installed_on, true, checksum, 0 FROM idem_schema LIMIT 1"
    ))
    .await;
    db.run(&["migrate"]).exits(4).complains("deploy that release here too");
    db.run(&["migrate", "--check"]).exits(1).says("deploy the newer release");
    db.run(&["show", "ord_1"]).exits(4).complains(&format!("they have version {newer}"));
    db.run(&["doctor"]).exits(1).says(&format!("the tables have version {newer}"));
    assert_eq!(db.number(VERSION).await, newer);
}

#[test]
fn a_file_that_is_not_there_is_not_made() {
    let db = Db::empty();
    let url = format!("sqlite:{}", db.file().display());
    run_in(db.folder.path(), &url, &["migrate"]).exits(3);
    assert!(!db.file().exists());
}
