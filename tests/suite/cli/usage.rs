//! Exit codes, streams, and what is no use at all.

use super::{Db, PROGRAM, run_in};

/// A call of every command that needs the tables.
pub(super) const ON_TABLES: &[&[&str]] = &[
    &["show", "ord_1"],
    &["purge"],
    &["purge", "--dry-run"],
    &["hold", "--reason", "replay", "--for", "1h"],
    &["holds"],
    &["release", "1"],
    &["forget", "ord_1", "--handler", "credit-account", "--reason", "undone", "--yes"],
];

/// A call of every command that needs the database.
const ON_DATABASE: &[&[&str]] = &[&["migrate"], &["migrate", "--check"], &["doctor"]];

#[test]
fn wrong_usage_is_2_and_does_nothing() {
    let db = Db::empty();
    let cases: [(&[&str], &str); 24] = [
        (&[], "requires a subcommand"),
        (&["migrat"], "'migrate'"),
        (&["show"], "<KEY>"),
        (&["show", ""], "part 1 of the key is empty"),
        (&["show", "a", "i:seven"], "write `s:i:seven`"),
        (&["show", "u:00000000-0000-0000-0000-000000000000"], "nil UUID"),
        (&["show", "a", "--handler", "x'; DROP TABLE idem_key; --"], "1 to 128 of"),
        (&["show", "a", "--handler", ""], "1 to 128 of"),
        (&["catalog", "--format", "pdf"], "markdown"),
        (&["catalog", "--check", "a", "--output", "b"], "cannot be used with"),
        (&["hold", "--for", "6h"], "--reason"),
        (&["hold", "--reason", "", "--for", "6h"], "--reason"),
        (&["hold", "--reason", "replay"], "--for"),
        (&["hold", "--reason", "replay", "--for", "6"], "unit"),
        (&["release"], "<ID>"),
        (&["forget", "ord_1", "--handler", "a"], "--reason"),
        (&["forget", "ord_1", "--reason", "undone"], "--handler"),
        (&["forget", "ord_1", "--handler", "a'b", "--reason", "undone"], "1 to 128 of"),
        (&["forget", "", "--handler", "a", "--reason", "undone", "--yes"], "part 1 of the key is empty"),
        (&["purge", "--handler", "a b"], "1 to 128 of"),
        (&["hold", "--reason", "replay", "--for", "6h", "--author", " "], "--author"),
        (&["handlers", "extra"], "extra"),
        (&["handlers", "--jsno"], "--json"),
        (&["doctor", "--db"], "<URL>"),
    ];
    for (args, says) in cases {
        let run = db.run(args).exits(2).complains(says);
        assert!(run.out.is_empty(), "{run:?}");
    }
    let both = db.run(&["catalog", "--json", "--format", "html"]).exits(2).complains("leave one of them out");
    assert_eq!(both.json()["error"]["kind"], "usage");
    assert!(!db.file().exists());
    run_in(db.folder.path(), "redis://nowhere", &["doctor"]).exits(2).complains("begins with `sqlite:`");
}

#[test]
fn help_is_on_standard_output_and_names_the_exit_codes() {
    let db = Db::empty();
    for code in 0..=5 {
        db.run(&["--help"]).exits(0).says(&format!("\n  {code}  "));
    }
    for args in [ON_TABLES, ON_DATABASE, &[&["handlers"], &["catalog"]]].concat() {
        let run = db.run(&[args[0], "--help"]).exits(0).says("Usage: ").says("--json");
        assert!(run.err.is_empty(), "{run:?}");
    }
}

#[test]
fn a_database_that_cannot_be_reached_is_3() {
    let db = Db::empty();
    let url = format!("sqlite:{}", db.path("nowhere/ops.db").display());
    for args in [ON_TABLES, ON_DATABASE].concat() {
        let run = run_in(db.folder.path(), &url, args).exits(3).complains("nothing was changed");
        assert!(run.out.is_empty(), "{run:?}");
        let error = &run_in(db.folder.path(), &url, &[args, &["--json"]].concat()).exits(3).json()["error"];
        assert_eq!(error["kind"], "unreachable");
    }
}

#[tokio::test]
async fn a_database_that_refuses_a_statement_is_5() {
    let db = Db::migrated();
    db.execute("ALTER TABLE idem_key RENAME COLUMN claimed_at TO moved_at").await;
    let run = db.run(&["show", "ord_1"]).exits(5).complains("claimed_at");
    assert!(run.out.is_empty(), "{run:?}");
    assert_eq!(db.run(&["show", "ord_1", "--json"]).exits(5).json()["error"]["kind"], "failed");
}

#[test]
fn a_database_that_cannot_be_written_is_4_and_can_be_asked() {
    let db = Db::migrated();
    let read_only = format!("sqlite:{}?mode=ro", db.file().display());
    let run = |args: &[&str]| run_in(db.folder.path(), &read_only, args);
    let hold = ["hold", "--reason", "replay", "--for", "1h"];
    run(&hold).exits(4).complains("read-only").complains("connect to the primary");
    assert_eq!(run(&[&hold[..], &["--json"]].concat()).exits(4).json()["error"]["kind"], "refused");
    run(&["purge"]).exits(4).complains("read-only");
    run(&["holds"]).exits(0);
    run(&["purge", "--dry-run"]).exits(0);
    run(&["show", "ord_1"]).exits(1);
    run(&["doctor"]).exits(1).says("redelivery");
    run(&["migrate"]).exits(0);
}

#[test]
fn what_needs_no_database_asks_none() {
    let db = Db::empty();
    for args in [["handlers"], ["catalog"]] {
        run_in(db.folder.path(), "sqlite:/nowhere/ops.db", &args).exits(0);
    }
    let handlers = db.run(&["handlers", "--json"]).exits(0).json();
    let names: Vec<_> =
        handlers["handlers"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["announce-parcel", "credit-account", "set-address", "show-visit"]);
    assert_eq!(handlers["handlers"][1]["slack_secs"], 2 * 86_400);
    let table = db.run(&["handlers"]).exits(0).out;
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(!table.contains('\x1b') && table.lines().all(|line| line.trim_end() == line), "{table}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    use std::process::{Command, Stdio};

    let mut child =
        Command::new(&*PROGRAM).args(["catalog", "--format", "html"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
