//! `show`: the key as it is typed, and what SQL says of it.

use idem_runtime::{Key, byte_id};
use serde_json::json;

use super::Db;

#[tokio::test]
async fn a_key_is_found_by_its_parts_and_by_its_stored_form() {
    let db = Db::migrated();
    db.key("credit-account", "1/s:ord_1", 3_600).await;
    let at = db.number("SELECT claimed_at / 1000 FROM idem_key").await;

    for typed in ["ord_1", "s:ord_1", "1/s:ord_1"] {
        let shown = db.run(&["show", typed, "--json"]).exits(0).json();
        assert_eq!(shown["key"], "1/s:ord_1");
        let [found] = shown["found"].as_array().unwrap().as_slice() else { panic!("{shown}") };
        assert_eq!((&found["handler"], &found["registered"]), (&json!("credit-account"), &json!(true)));
        let kept = found["kept_for_secs"].as_i64().unwrap() + found["age_secs"].as_i64().unwrap();
        assert_eq!(kept, 35 * 86_400);
        let claimed_at = found["claimed_at"].as_str().unwrap();
        assert_eq!(db.number(&format!("SELECT unixepoch('{claimed_at}')")).await, at);
    }
    let text = db.run(&["show", "ord_1"]).exits(0).says("applied").says("by `credit-account`").out;
    assert!(text.contains("1h") && !text.contains('\x1b'), "{text}");
}

#[tokio::test]
async fn a_part_has_the_type_that_it_is_given() {
    let db = Db::migrated();
    let uuid = uuid::Uuid::from_u128(7);
    let long = "x".repeat(300);
    let cases: [(&[&str], Key); 9] = [
        (&["i:7", "i:-8"], Key::of(&7, &[&-8]).unwrap()),
        (&["7"], Key::of(&"7", &[]).unwrap()),
        (&["s:i:7"], Key::of(&"i:7", &[]).unwrap()),
        (&["b:true", "c:x"], Key::of(&true, &[&'x']).unwrap()),
        (&["x:6501"], Key::of(&byte_id(&[0x65, 1]), &[]).unwrap()),
        (&["u:00000000000000000000000000000007"], Key::of(&uuid, &[]).unwrap()),
        (&["a/b", "it's", "50 %"], Key::of(&"a/b", &[&"it's", &"50 %"]).unwrap()),
        (&["é"], Key::of(&"é", &[]).unwrap()),
        (&[&long], Key::of(&long, &[]).unwrap()),
    ];
    for (typed, key) in cases {
        db.key("credit-account", key.as_str(), 0).await;
        for args in [typed, &[key.as_str()]] {
            let shown = db.run(&[&["show", "--json"], args].concat()).exits(0).json();
            assert_eq!(shown["key"], key.as_str(), "{args:?}");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_says_why_that_may_be() {
    let db = Db::migrated();
    db.key("announce-parcel", "1/i:7/i:1", 0).await;
    let shown = db.run(&["show", "7", "i:1", "--json"]).exits(1).json();
    assert_eq!(shown["found"], json!([]));
    assert_eq!(shown["asked"], json!(["announce-parcel", "credit-account"]));
    db.run(&["show", "7", "i:1"]).exits(1).says("not found").says("write `i:7`");
    db.run(&["show", "i:7", "--handler", "announce-parcel"]).exits(1).says("has 2 parts, `event.order, event.parcel`");
    db.run(&["show", "i:7", "--handler", "set-address"]).exits(1).says("keeps no keys");
    db.run(&["show", "i:7", "--handler", "gone"]).exits(1).says("has no handler `gone`");
    db.run(&["show", "i:7", "i:1", "--handler", "credit-account"]).exits(1);
    db.run(&["show", "i:7", "i:1", "--handler", "announce-parcel"]).exits(0);
}

#[tokio::test]
async fn keys_of_handlers_that_are_gone_and_of_expired_ones_are_shown_as_such() {
    let db = Db::migrated();
    db.key("gone", "1/s:a", 10).await;
    db.key("credit-account", "1/s:old", 36 * 86_400).await;
    db.run(&["show", "a", "--handler", "gone"]).exits(0).says("by a handler that this program does not know");
    db.run(&["show", "old"]).exits(0).says("its retention is over");
    let shown = db.run(&["show", "old", "--json"]).exits(0).json();
    assert_eq!(shown["found"][0]["kept_for_secs"], 0);
}
