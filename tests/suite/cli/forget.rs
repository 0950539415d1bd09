//! `forget`: the key goes, and who said so stays.

use sha2::{Digest, Sha256};

use super::Db;

const FORGET: [&str; 6] = ["forget", "ord_1", "--handler", "credit-account", "--reason", "credited by hand"];

fn forget(more: &[&'static str]) -> Vec<&'static str> {
    [&FORGET, more].concat()
}

#[tokio::test]
async fn the_key_goes_and_the_table_says_who_when_and_why() {
    let db = Db::migrated();
    db.key("credit-account", "1/s:ord_1", 3_600).await;
    db.key("credit-account", "1/s:ord_2", 3_600).await;
    db.key("announce-parcel", "1/s:ord_1", 3_600).await;
    let claimed = db.number("SELECT claimed_at FROM idem_key WHERE handler = 'credit-account' LIMIT 1").await;

    let forgot = db.run(&forget(&["--yes", "--author", "ines", "--json"])).exits(0).json();
    assert_eq!((&forgot["forgotten"], &forgot["key"]), (&true.into(), &"1/s:ord_1".into()));
    let digest: String = Sha256::digest(b"1/s:ord_1").iter().map(|byte| format!("{byte:02X}")).collect();
    let written = format!(
        "SELECT count(*) FROM idem_forgotten WHERE handler = 'credit-account' AND hex(key_digest) = '{digest}' \
         AND author = 'ines' AND reason = 'credited by hand' AND claimed_at = {claimed} \
         AND abs(forgotten_at / 1000 - unixepoch()) < 60"
    );
    assert_eq!(db.number(&written).await, 1);
    assert_eq!(db.number("SELECT count(*) FROM idem_key").await, 2);
    assert_eq!(db.number("SELECT count(*) FROM idem_key WHERE CAST(event_key AS TEXT) = '1/s:ord_1'").await, 1);

    let shown = db.run(&["show", "ord_1", "--handler", "credit-account", "--json"]).exits(1).json();
    assert_eq!((&shown["forgotten"][0]["author"], &shown["hints"]), (&"ines".into(), &serde_json::json!([])));
    db.run(&forget(&["--yes"])).exits(1).says("nothing was deleted");
    assert_eq!(db.number("SELECT count(*) FROM idem_forgotten").await, 1);

    // Applied again, and forgotten again.
    db.key("credit-account", "1/s:ord_1", 0).await;
    db.run(&forget(&["--yes"])).exits(0).says("by olga (from $USER").says("is applied again");
    assert_eq!(db.number("SELECT count(*) FROM idem_forgotten").await, 2);
}

#[tokio::test]
async fn without_a_human_or_their_yes_the_key_is_kept() {
    let db = Db::migrated();
    db.key("credit-account", "1/s:ord_1", 0).await;
    db.run(&forget(&[])).exits(4).complains("the key is kept").complains("--yes");
    assert_eq!(db.run(&forget(&["--json"])).exits(4).json()["error"]["kind"], "refused");
    assert_eq!(db.number("SELECT count(*) FROM idem_key").await, 1);
    assert_eq!(db.number("SELECT count(*) FROM idem_forgotten").await, 0);
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_forgotten() {
    let db = Db::migrated();
    db.key("credit-account", "1/s:ord_1", 0).await;
    db.execute("CREATE TRIGGER closed BEFORE INSERT ON idem_forgotten BEGIN SELECT raise(ABORT, 'closed'); END").await;
    db.run(&forget(&["--yes"])).exits(5).complains("closed");
    assert_eq!(db.number("SELECT count(*) FROM idem_key").await, 1);
}
