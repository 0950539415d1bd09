//! The same commands over PostgreSQL and MariaDB.

use std::path::Path;

use idem_tests::{TestStore, without_server};
use sqlx::{ConnectOptions, MySql, Postgres};

use super::run_in;

async fn every_command_works<S: TestStore>(url: impl Fn(&S::Place) -> String, old_key: &str, drop_index: &str) {
    let place = S::create().await;
    let url = url(&place);
    let run = |args: &[&str]| run_in(Path::new("."), &url, args);
    run(&["show", "ord_1"]).exits(4).complains("run `migrate`");
    run(&["doctor"]).exits(1).says("error (schema)");
    run(&["migrate"]).exits(0);
    run(&["migrate", "--check"]).exits(0);
    let document = run(&["doctor", "--json"]).exits(1).json();
    let checks = document["findings"].as_array().unwrap().iter().map(|finding| finding["check"].as_str().unwrap());
    // A test server may well be one that never cleans up.
    assert_eq!(checks.filter(|check| *check != "autovacuum").collect::<Vec<_>>(), ["redelivery"], "{document}");

    let judge = S::open(&place, 1, "").await;
    let mut conn = judge.acquire().await.unwrap();
    S::run(&mut conn, old_key).await.unwrap();
    let shown = run(&["show", "i:7", "ord_1", "--json"]).exits(0).json();
    assert_eq!(shown["found"][0]["claimed_at"], "2020-02-03T04:05:06.700000Z", "{shown}");
    let forget = ["forget", "i:7", "ord_1", "--handler", "credit-account", "--reason", "it's undone"];
    run(&forget).exits(4).complains("--yes");
    run(&[&forget[..], &["--yes"]].concat()).exits(0).says("forgotten");
    run(&[&forget[..], &["--yes"]].concat()).exits(1).says("not found");
    run(&["show", "i:7", "ord_1"]).exits(1).says("forgotten by olga").says("it's undone");
    assert_eq!(S::number(&mut conn, "SELECT count(*) FROM idem_forgotten").await.unwrap(), 1);
    S::run(&mut conn, old_key).await.unwrap();

    let placed = run(&["hold", "--reason", "it's a replay", "--for", "6h", "--json"]).exits(0).json();
    let id = placed["hold"]["id"].as_str().unwrap();
    run(&["holds"]).exits(0).says("it's a replay").says("olga");
    run(&["purge"]).exits(4).says(id);
    run(&["release", id]).exits(0);
    run(&["purge", "--dry-run"]).exits(0).says("1 keys would go");
    run(&["doctor"]).exits(1).says("purge_lag");
    run(&["purge", "--handler", "credit-account"]).exits(0).says("1 keys went");
    assert_eq!(S::number(&mut conn, "SELECT count(*) FROM idem_key").await.unwrap(), 0);
    run(&["show", "i:7", "ord_1"]).exits(1);

    S::run(&mut conn, drop_index).await.unwrap();
    run(&["doctor"]).exits(1).says("warning (index)");
    drop(conn);
    judge.close().await;
    S::destroy(place).await;
}

#[tokio::test]
async fn postgres() {
    if without_server("postgres") || without_server("pg") {
        return;
    }
    let url = |(options, name): &<Postgres as TestStore>::Place| {
        let mut url = options.to_url_lossy();
        url.query_pairs_mut().append_pair("options[search_path]", name);
        url.to_string()
    };
    let old_key = "INSERT INTO idem_key (handler, event_key, claimed_at, claim) \
                   VALUES ('credit-account', '1/i:7/s:ord_1', '2020-02-03 04:05:06.7Z', 1)";
    every_command_works::<Postgres>(url, old_key, "DROP INDEX idem_key_age").await;
}

#[tokio::test]
async fn a_table_that_is_never_cleaned_up_is_found() {
    if without_server("postgres") || without_server("pg") {
        return;
    }
    let place = Postgres::create().await;
    let mut url = place.0.to_url_lossy();
    url.query_pairs_mut().append_pair("options[search_path]", &place.1);
    let run = |args: &[&str]| run_in(Path::new("."), url.as_str(), args);
    run(&["migrate"]).exits(0);
    let judge = Postgres::open(&place, 1, "").await;
    let mut conn = judge.acquire().await.unwrap();
    Postgres::run(&mut conn, "ALTER TABLE idem_key SET (autovacuum_enabled = off)").await.unwrap();
    run(&["doctor"]).exits(1).says("warning (autovacuum)").says("VACUUM idem_key");
    Postgres::run(&mut conn, "ALTER TABLE idem_key RESET (autovacuum_enabled)").await.unwrap();
    let is_off =
        Postgres::number(&mut conn, "SELECT (current_setting('autovacuum') = 'off')::int::bigint").await.unwrap();
    assert_eq!(run(&["doctor"]).out.contains("autovacuum"), is_off == 1);
    drop(conn);
    judge.close().await;
    Postgres::destroy(place).await;
}

#[tokio::test]
async fn mysql() {
    if without_server("mysql") {
        return;
    }
    let url = |(options, _): &<MySql as TestStore>::Place| options.to_url_lossy().to_string();
    let old_key = "INSERT INTO idem_key (handler, event_key, claimed_at, claim) \
                   VALUES ('credit-account', '1/i:7/s:ord_1', '2020-02-03 04:05:06.7', 1)";
    every_command_works::<MySql>(url, old_key, "DROP INDEX idem_key_age ON idem_key").await;
}

#[test]
fn a_server_that_is_not_there_is_3() {
    for url in ["postgres://nobody@127.0.0.1:1/none", "mysql://nobody@127.0.0.1:1/none"] {
        let run = run_in(Path::new("."), url, &["doctor", "--json"]).exits(3);
        assert_eq!(run.json()["error"]["kind"], "unreachable");
        assert!(run.err.contains("server up"), "{run:?}");
    }
}
