//! `purge`: what goes is what SQL says is old enough.

use super::Db;

const DAY: i64 = 86_400;

async fn left(db: &Db, handler: &str) -> i64 {
    db.number(&format!("SELECT count(*) FROM idem_key WHERE handler = '{handler}'")).await
}

/// Old and young keys of two handlers of the program, one that is gone, and one of another application.
async fn filled() -> Db {
    let db = Db::migrated();
    for number in 0..30 {
        db.key("credit-account", &format!("1/s:{number}"), if number < 10 { 36 * DAY } else { 34 * DAY }).await;
    }
    db.key("announce-parcel", "1/i:1/i:1", 15 * DAY).await;
    db.key("gone", "1/s:a", 2 * DAY).await;
    db.key("sell", "1/s:a", 400 * DAY).await;
    db.recorded("default", "gone", "msg.id", DAY, 0).await;
    db.recorded("shop", "sell", "event.id", DAY, 0).await;
    db
}

#[tokio::test]
async fn a_dry_run_counts_and_deletes_nothing_and_a_pass_deletes_what_it_counted() {
    let db = filled().await;
    let counted = db.run(&["purge", "--dry-run", "--json"]).exits(0).json();
    assert_eq!((&counted["dry_run"], &counted["keys"]), (&true.into(), &12.into()), "{counted}");
    assert_eq!(left(&db, "credit-account").await, 30);
    db.run(&["purge", "--dry-run"]).exits(0).says("12 keys would go; nothing was deleted").says("orphaned");

    let purged = db.run(&["purge", "--json"]).exits(0).json();
    assert_eq!(purged["handlers"], counted["handlers"]);
    let handlers: Vec<_> = purged["handlers"].as_array().unwrap().iter().map(|row| row["handler"].as_str()).collect();
    assert_eq!(handlers, [Some("announce-parcel"), Some("credit-account"), Some("gone")]);
    assert_eq!((left(&db, "credit-account").await, left(&db, "announce-parcel").await), (20, 0));
    assert_eq!((left(&db, "gone").await, left(&db, "sell").await), (0, 1));
    let run = db.run(&["purge"]).exits(0).says("0 keys went");
    assert!(run.err.is_empty() && !run.out.contains('\x1b'), "{run:?}");
}

#[tokio::test]
async fn one_handler_alone_is_purged() {
    let db = filled().await;
    let purged = db.run(&["purge", "--handler", "announce-parcel", "--json"]).exits(0).json();
    assert_eq!(purged["keys"], 1);
    assert_eq!((left(&db, "announce-parcel").await, left(&db, "credit-account").await), (0, 30));
    db.run(&["purge", "--handler", "gone"]).exits(0).says("1 keys went");
    for unknown in ["sell", "set-address", "nobody"] {
        db.run(&["purge", "--handler", unknown]).exits(2).complains("nothing was deleted");
    }
    assert_eq!((left(&db, "sell").await, left(&db, "credit-account").await), (1, 30));
}

#[tokio::test]
async fn a_shorter_retention_is_counted_before_it_counts() {
    let db = filled().await;
    db.recorded("default", "credit-account", "event.id", 40 * DAY, 0).await;
    let counted = db.run(&["purge", "--dry-run", "--json"]).exits(0).json();
    let row = &counted["handlers"][1];
    assert_eq!((&row["handler"], &row["keys"]), (&"credit-account".into(), &0.into()));
    let shortened = &row["shortened"];
    assert_eq!((&shortened["was_secs"], &shortened["is_secs"]), (&(40 * DAY).into(), &(35 * DAY).into()));
    assert_eq!(shortened["exposed_keys"], 10);
    assert!(shortened["goes_in_secs"].as_i64().unwrap() > DAY - 600, "{shortened}");
    db.run(&["purge", "--dry-run"]).exits(0).says("SHORTENED from 40d to 35d: 10 more");
    // The node that said 40 days may still run.
    db.run(&["purge"]).exits(0);
    assert_eq!(left(&db, "credit-account").await, 30);
}

#[tokio::test]
async fn a_hold_and_another_node_are_refusals() {
    let db = filled().await;
    let hold = db.run(&["hold", "--reason", "replay of May", "--for", "6h", "--json"]).exits(0).json();
    let id = hold["hold"]["id"].as_str().unwrap();
    let purged = db.run(&["purge", "--json"]).exits(4).json();
    assert_eq!((&purged["stopped"]["kind"], &purged["stopped"]["hold"]["id"]), (&"held".into(), &id.into()));
    db.run(&["purge"]).exits(4).says("replay of May").says(&format!("`release {id}`"));
    db.run(&["purge", "--dry-run"]).exits(0);
    db.run(&["release", id]).exits(0);

    db.execute("UPDATE idem_lease SET holder = 'other', until_at = (unixepoch() + 60) * 1000").await;
    assert_eq!(db.run(&["purge", "--json"]).exits(4).json()["stopped"]["kind"], "elsewhere");
    assert_eq!(left(&db, "credit-account").await, 30);
    db.execute("UPDATE idem_lease SET until_at = 0").await;
    db.run(&["purge"]).exits(0);
}

#[tokio::test]
async fn a_handler_whose_keys_cannot_be_purged_is_5_and_keeps_no_other_from_it() {
    let db = filled().await;
    db.execute(
        "CREATE TRIGGER closed BEFORE DELETE ON idem_key WHEN old.handler = 'announce-parcel' \
         BEGIN SELECT raise(ABORT, 'closed'); END",
    )
    .await;
    let purged = db.run(&["purge", "--json"]).exits(5).json();
    assert_eq!(purged["failures"][0]["handler"], "announce-parcel");
    assert!(purged["failures"][0]["text"].as_str().unwrap().contains("closed"), "{purged}");
    assert_eq!((left(&db, "credit-account").await, left(&db, "announce-parcel").await), (20, 1));
}

#[tokio::test]
async fn many_keys_have_lines_on_standard_error() {
    let db = Db::migrated();
    db.execute(
        "INSERT INTO idem_key (handler, event_key, claimed_at, claim) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000) \
         SELECT 'credit-account', CAST('1/i:' || i AS BLOB), 0, i FROM n",
    )
    .await;
    let run =
        db.run(&["purge"]).exits(0).says("120,000 keys went").complains("100,000 keys went, now of `credit-account`");
    assert_eq!(run.err.lines().count(), 1, "{run:?}");
}
