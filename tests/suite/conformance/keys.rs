//! Different events have different keys (class D), equal events equal ones (class E).

use std::collections::BTreeSet;
use std::sync::Arc;

use idem_runtime::{ErrorKind, KeyPart, Settle, idempotent};
use idem_tests::{Db, Delivered, Message, Step, TestStore, deliver, perform};
use sqlx::Transaction;
use uuid::Uuid;

#[idempotent(key(tenant, order), retention = "1d", name = "tests.place_order")]
async fn place_order<S: TestStore>(tx: &mut Transaction<'_, S>, tenant: &str, order: &Uuid) -> sqlx::Result<()> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('placed')").await.map(drop)
}

/// [B13]
pub(super) async fn a_missing_part_is_refused_and_stores_nothing<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let order = Uuid::new_v4();
    for (tenant, order, said) in
        [("", order, "part 1 of the key is empty"), ("acme", Uuid::nil(), "part 2 of the key is the nil UUID")]
    {
        for _ in 0..2 {
            let error = place_order(&engine, tenant, &order).await.unwrap_err();
            assert_eq!((error.kind(), error.settle()), (Some(ErrorKind::InvalidKey), Settle::DeadLetter));
            let source = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(source.as_deref(), Some(said));
        }
    }
    assert_eq!((db.keys().await, db.effects("placed").await), (0, 0));
    assert!(place_order(&engine, "acme", &order).await.unwrap().is_applied());
}

/// Every one of these is another event.
fn tricky() -> Vec<String> {
    let mut ids: Vec<String> = [
        " ",
        "  ",
        "\0",
        "\0\0",
        "a",
        "A",
        "á",
        "a\u{301}",
        "ss",
        "ß",
        "ﬁ",
        "fi",
        "İ",
        "i",
        "%",
        "%25",
        "/",
        "%2F",
        "~",
        "'",
        "\\",
        "\"",
        "null",
        "None",
        "a/b",
        "a/b/",
        "\u{feff}a",
        "\u{202e}a",
        "😀",
        "\u{10ffff}",
        "1",
        "01",
        "1 ",
    ]
    .map(String::from)
    .into();
    ids.extend((1..=31_u8).map(|control| char::from(control).to_string()));
    ids
}

/// [B15, B17]
pub(super) async fn any_text_is_a_key_of_its_own<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let ids = tricky();
    for expected in [Delivered::Applied, Delivered::Duplicate] {
        for id in &ids {
            let msg = Message::new(id.clone(), [Step::Effect("e")]);
            assert_eq!(deliver(&engine, &msg).await, expected, "{id:?}");
        }
    }
    let count = i64::try_from(ids.len()).unwrap();
    assert_eq!((db.keys().await, db.effects("e").await), (count, count));
}

/// [B19]
pub(super) async fn long_keys_stay_apart_and_their_rows_small<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    // Random, since an index entry that compresses well would fit.
    let random: String = (0..160).map(|_| Uuid::new_v4().simple().to_string()).collect();
    let mut ids = vec![format!("{}x", &random[..4_999]), format!("{}y", &random[..4_999])];
    ids.push("k".repeat(65_536));
    ids.push("k".repeat(65_537));
    for expected in [Delivered::Applied, Delivered::Duplicate] {
        for id in &ids {
            assert_eq!(deliver(&engine, &Message::new(id.clone(), [Step::Effect("e")])).await, expected);
        }
    }
    assert_eq!((db.keys().await, db.effects("e").await), (4, 4));
    assert_eq!(db.number("SELECT count(*) FROM idem_key WHERE length(event_key) > 128").await, 0);
}

/// [B17]
pub(super) async fn case_and_accents_make_different_events<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    for id in ["Order-A", "order-a", "cafe", "café", "order-a "] {
        assert_eq!(deliver(&engine, &Message::new(id, [Step::Effect("e")])).await, Delivered::Applied, "{id:?}");
    }
    assert_eq!(db.effects("e").await, 5);
}

/// [B21]
pub(super) async fn no_column_of_the_unique_key_can_be_null<S: TestStore>(db: Arc<Db<S>>) {
    let nullable = match S::NAME {
        "SQLite" => "SELECT count(*) FROM pragma_table_info('idem_key') WHERE pk > 0 AND \"notnull\" = 0",
        "PostgreSQL" => {
            "SELECT count(*) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) \
             WHERE indrelid = 'idem_key'::regclass AND indisunique AND NOT attnotnull"
        }
        _ => {
            "SELECT count(*) FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND table_name = 'idem_key' AND non_unique = 0 AND nullable = 'YES'"
        }
    };
    assert_eq!(db.number(nullable).await, 0);
}

/// Panics for some messages while its key is made.
#[idempotent(key(first_word(note)), retention = "1d", name = "tests.first_word")]
async fn words<S: TestStore>(tx: &mut Transaction<'_, S>, note: &str) -> sqlx::Result<()> {
    S::run(tx, &format!("INSERT INTO effect (note) VALUES ('{note}')")).await.map(drop)
}

fn first_word(note: &str) -> &str {
    note.split(' ').nth(1).expect("a second word")
}

/// It never reaches the database, and the consumer gets an answer instead of a panic.
pub(super) async fn a_panic_while_the_key_is_made_is_a_failed_delivery<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let failure = words(&engine, "one").await.unwrap_err();
    assert_eq!(failure.kind(), Some(ErrorKind::Panicked));
    assert!(failure.to_string().contains("while its key was made: a second word"), "{failure}");
    assert!(words(&engine, "two words").await.unwrap().is_applied());
    assert_eq!((db.keys().await, db.effects("two words").await), (1, 1));
}

/// Another build's function, under the name that it always had.
#[idempotent(key(id), retention = "1d", name = "billing.credit_balance")]
async fn credited_by_another_build<S: TestStore>(tx: &mut Transaction<'_, S>, id: &str) -> sqlx::Result<()> {
    S::run(tx, "INSERT INTO effect (note) VALUES ('credited')").await.map(drop)
}

/// [B22] The row is one that an earlier build wrote: `key_vectors.rs` keeps its form.
pub(super) async fn a_pinned_name_survives_another_function<S: TestStore>(db: Arc<Db<S>>) {
    let now = match S::NAME {
        "SQLite" => "unixepoch() * 1000",
        "PostgreSQL" => "now()",
        _ => "UTC_TIMESTAMP(6)",
    };
    let key = if S::NAME == "SQLite" { "CAST('1/s:ord_1' AS BLOB)" } else { "'1/s:ord_1'" };
    db.run(&format!(
        "INSERT INTO idem_key (handler, event_key, claimed_at, claim) VALUES ('billing.credit_balance', {key}, {now}, 1)"
    ))
    .await;
    let engine = db.engine(1).await;
    assert!(credited_by_another_build(&engine, "ord_1").await.unwrap().is_duplicate());
    assert!(credited_by_another_build(&engine, "ord_2").await.unwrap().is_applied());
    assert_eq!(db.effects("credited").await, 1);
}

/// The statements of `docs/schema.md`, as they stand there.
pub(super) async fn an_event_is_found_with_a_plain_select<S: TestStore>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    assert_eq!(deliver(&engine, &Message::new("ord_123", [Step::Effect("e")])).await, Delivered::Applied);
    let page = include_str!("../../../docs/schema.md");
    let statement = page
        .split("```sql")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .find(|block| block.contains(&format!("-- {}: was this event processed", S::NAME)))
        .expect("docs/schema.md shows how to find an event");
    let statement = statement.trim().trim_end_matches(';').replace("credit_balance", "perform");
    let found =
        format!("SELECT count(*) FROM ({}\n) AS found", statement.lines().skip(1).collect::<Vec<_>>().join("\n"));
    assert_eq!(db.number(&found).await, 1, "{found}");
    assert_eq!(db.number(&found.replace("ord_123", "ord_124")).await, 0);
}

/// A key's parts are part of the persisted format; their types are too.
#[test]
fn the_same_digits_in_another_type_are_another_key() {
    let parts: [&dyn KeyPart; 6] = [&1_u8, &"1", &'1', &true, &"true", &Uuid::from_u128(1)];
    let keys: BTreeSet<String> =
        parts.iter().map(|part| idem_runtime::Key::of(*part, &[]).unwrap().to_string()).collect();
    assert_eq!(keys.len(), parts.len());
    assert_eq!(perform::key::<sqlx::Sqlite>(&Message::new("ord_1", [])).unwrap().as_str(), "1/s:ord_1");
}
