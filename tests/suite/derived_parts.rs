//! `#[derive(KeyPart)]`: the keys that derived parts give, which are persisted, and handlers that use them. Clippy's
//! pedantic lints are errors here, as its user may have turned them on.

#![deny(clippy::pedantic)]

use std::borrow::Cow;
use std::marker::PhantomData;

use idem_runtime::{ErrorKind, Key, KeyPart, Part, byte_id, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, Transaction};
use uuid::Uuid;

#[derive(KeyPart)]
struct OrderId(String);

#[derive(KeyPart)]
struct Line {
    number: u32,
}

#[derive(KeyPart)]
struct Borrowed<'a>(&'a str);

#[derive(KeyPart)]
struct Shared<'a> {
    text: Cow<'a, str>,
}

/// Of no size, like a `str` that was checked.
#[derive(KeyPart)]
struct Checked<T: ?Sized>(T);

#[derive(KeyPart)]
struct Id<T: ?Sized, I = Uuid>(I, PhantomData<T>);

#[derive(KeyPart)]
struct Nested(Id<Line, Box<OrderId>>);

#[derive(KeyPart)]
struct Boxed(Box<dyn KeyPart>);

#[derive(KeyPart, Clone, Copy)]
enum Kind {
    Paid = 3,
    #[key(rename = "Refunded")]
    Reimbursed,
    #[key(rename = "part/paid '%'")]
    Partly,
    r#None,
}

fn key(part: &dyn KeyPart) -> String {
    Key::of(part, &[]).unwrap().to_string()
}

#[test]
fn a_newtype_is_written_as_its_field_is() {
    assert_eq!(key(&OrderId("a/b".into())), key(&"a/b"));
    assert_eq!(key(&OrderId("ord_1".into())), "1/s:ord_1");
    assert_eq!(key(&Line { number: 7 }), "1/i:7");
    assert_eq!(key(&Borrowed("ord_1")), "1/s:ord_1");
    assert_eq!(key(&Shared { text: "ord_1".into() }), "1/s:ord_1");
    assert_eq!(key(&Id::<str>(Uuid::from_u128(1), PhantomData)), key(&Uuid::from_u128(1)));
    assert_eq!(key(&Id::<str, _>(byte_id(&[0xab]), PhantomData)), "1/x:ab");
    assert_eq!(key(&Nested(Id(Box::new(OrderId("ord_1".into())), PhantomData))), "1/s:ord_1");
    assert_eq!(key(&Boxed(Box::new('x'))), "1/c:x");
}

#[test]
fn a_newtype_of_no_size_is_a_part_behind_a_reference() {
    let boxed: Box<Checked<dyn KeyPart>> = Box::new(Checked(7_u8));
    assert_eq!(key(&boxed), "1/i:7");
    assert_eq!(key(&&*boxed), "1/i:7");
    assert_eq!(key(&Checked("ord_1")), "1/s:ord_1");
}

/// Golden: these texts are persisted.
#[test]
fn an_enum_is_written_as_its_variants_name() {
    assert_eq!(key(&Kind::Paid), "1/s:Paid");
    assert_eq!(key(&Kind::Reimbursed), "1/s:Refunded");
    assert_eq!(key(&Kind::Partly), "1/s:part%2Fpaid %27%25%27");
    assert_eq!(key(&Kind::r#None), "1/s:None");
}

#[test]
fn a_derived_part_equals_the_one_that_is_written_by_hand() {
    struct ByHand(String);
    impl KeyPart for ByHand {
        fn part(&self) -> Part<'_> {
            self.0.part()
        }
    }
    for text in ["ord_1", "", "João", &"k".repeat(200)] {
        let (derived, by_hand) = (OrderId(text.to_owned()), ByHand(text.to_owned()));
        assert_eq!(Key::of(&derived, &[&Kind::Paid]), Key::of(&by_hand, &[&"Paid"]));
    }
}

struct Message {
    order: OrderId,
    kind: Kind,
}

fn message(order: &str, kind: Kind) -> Message {
    Message { order: OrderId(order.to_owned()), kind }
}

#[idempotent(key(msg.order, msg.kind), fingerprint(msg.kind), retention = "1d", name = "derived_parts.settle")]
async fn settle(tx: &mut Transaction<'_, Sqlite>, msg: &Message) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effect (note) VALUES (?)").bind(&msg.order.0).execute(&mut **tx).await.map(drop)
}

/// The same handler before its types were introduced, and before a variant was renamed.
#[idempotent(key(order, kind), retention = "1d", name = "derived_parts.settle_before")]
async fn settle_before(tx: &mut Transaction<'_, Sqlite>, order: &str, kind: &str) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effect (note) VALUES (?)")
        .bind(format!("{order} {kind}"))
        .execute(&mut **tx)
        .await
        .map(drop)
}

#[tokio::test]
async fn a_handler_with_derived_parts_applies_each_event_once() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        for kind in [Kind::Paid, Kind::Reimbursed] {
            assert!(settle(&engine, &message("ord_1", kind)).await.unwrap().is_applied());
            assert!(settle(&engine, &message("ord_1", kind)).await.unwrap().is_duplicate());
        }
        assert_eq!(db.effects("ord_1").await, 2);
        let stored = "SELECT count(*) FROM idem_key WHERE CAST(event_key AS TEXT) IN ('1/s:ord_1/s:Paid', '1/s:ord_1/s:Refunded')";
        assert_eq!(db.number(stored).await, 2);
    })
    .await;
}

#[test]
fn keys_from_before_the_types_and_the_renaming_still_count() {
    let before = settle_before::key("ord_1", "Refunded").unwrap();
    assert_eq!(settle::key(&message("ord_1", Kind::Reimbursed)).unwrap().as_str(), before.as_str());
}

#[tokio::test]
async fn a_newtype_of_a_missing_identifier_is_refused_as_the_identifier_is() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let failure = settle(&engine, &message("", Kind::Paid)).await.unwrap_err();
        assert_eq!(failure.kind(), Some(ErrorKind::InvalidKey));
        assert_eq!(db.keys().await, 0);
    })
    .await;
}
