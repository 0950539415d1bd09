//! `hold`, `release` and `holds`: who, why and until when stand in the table.

use std::process::Command;

use super::{Db, PROGRAM, Run};

#[tokio::test]
async fn a_hold_is_written_down_with_reason_author_and_end() {
    let db = Db::migrated();
    let placed =
        db.run(&["hold", "--reason", "replay of May", "--for", "6h", "--author", "ines", "--json"]).exits(0).json();
    let id = placed["hold"]["id"].as_str().unwrap().to_owned();
    assert_eq!(placed["author_from"], "option");
    let written = format!(
        "SELECT count(*) FROM idem_hold WHERE id = '{id}' AND reason = 'replay of May' AND author = 'ines' \
         AND abs(expires_at - placed_at - 6 * 3600 * 1000) < 1000 AND released_at IS NULL"
    );
    assert_eq!(db.number(&written).await, 1);

    let holds = db.run(&["holds", "--json"]).exits(0).json();
    assert_eq!(holds["holds"][0]["id"], id.as_str());
    db.run(&["holds"]).exits(0).says("EXPIRES IN").says("replay of May").says("ines");

    db.run(&["release", &id]).exits(0).says("released by olga (from $USER");
    let released = format!("SELECT count(*) FROM idem_hold WHERE id = '{id}' AND released_by = 'olga'");
    assert_eq!(db.number(&released).await, 1);
    db.run(&["holds"]).exits(0).says("no hold is in force");
    assert_eq!(db.run(&["release", &id, "--json"]).exits(1).json()["released"], false);
    db.run(&["release", "nothing"]).exits(1).says("no such hold");
}

#[tokio::test]
async fn an_expired_hold_holds_no_more() {
    let db = Db::migrated();
    db.run(&["hold", "--reason", "replay", "--for", "1h"]).exits(0);
    db.execute("UPDATE idem_hold SET expires_at = 1").await;
    db.run(&["holds"]).exits(0).says("no hold is in force");
    db.run(&["purge"]).exits(0);
}

#[tokio::test]
async fn the_author_is_the_environment_s_or_the_process_s() {
    let db = Db::migrated();
    let hold = ["hold", "--reason", "replay", "--for", "1h"];
    db.run(&hold).exits(0).says("by olga (from $USER; --author says otherwise)");
    let output = Command::new(&*PROGRAM).env_remove("USER").args(["--db", &db.url()]).args(hold).arg("--json").output();
    let placed = Run::of(output.unwrap()).exits(0).json();
    assert_eq!(placed["author_from"], "system");
    let author = placed["hold"]["author"].as_str().unwrap();
    assert_eq!(db.number(&format!("SELECT count(*) FROM idem_hold WHERE author = '{author}'")).await, 1);
}

#[tokio::test]
async fn what_others_wrote_does_not_command_the_terminal() {
    let db = Db::migrated();
    db.run(&["hold", "--reason", "red\x1b[31m\nnow", "--for", "1h"]).exits(0);
    for args in [["holds"], ["doctor"], ["purge"]] {
        let run = db.run(&args).says("red\\u{1b}[31m\\nnow");
        assert!(!run.out.contains('\x1b'), "{run:?}");
    }
    assert_eq!(db.run(&["holds", "--json"]).exits(0).json()["holds"][0]["reason"], "red\x1b[31m\nnow");
}
