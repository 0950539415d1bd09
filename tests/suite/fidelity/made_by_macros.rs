//! Handlers that a `macro_rules!` of the user's makes.

use idem_runtime::{Retention, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, Transaction};

use super::{Paid, applies_once, paid, write};

const WINDOW: Retention = Retention::days(3);

macro_rules! handler {
    (
        $(#[$attr:meta])* $vis:vis fn $name:ident($tx:ident: $tx_ty:ty, $msg:ident: $msg_ty:ty) -> $out:ty
        where $key:expr, $window:expr, $pinned:expr;
        $body:block
    ) => {
        $(#[$attr])*
        #[idempotent(key = $key, retention = $window, name = $pinned)]
        $vis async fn $name($tx: $tx_ty, $msg: $msg_ty) -> $out $body
    };
}

handler! {
    /// Made of an expression.
    #[allow(clippy::needless_pass_by_value)]
    fn of_an_expression(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> sqlx::Result<()>
    where msg.id, WINDOW, "made.of_an_expression";
    { write(tx, &msg.id).await }
}

handler! {
    fn of_a_tuple(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> sqlx::Result<()>
    where (msg.id, msg.kind as u8), "36h", "made.of_a_tuple";
    { write(tx, &msg.id).await }
}

/// The message's name belongs to the macro, the field's to its caller.
macro_rules! by_field {
    ($name:ident, $pinned:literal, $($field:ident),* $(; $literal:literal)?) => {
        #[idempotent(key($(msg.$field),* $(, $literal)?), retention = "1d", name = $pinned)]
        async fn $name(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> sqlx::Result<()> {
            write(tx, concat!($(stringify!($field)),*)).await
        }
    };
}

/// A string means the names that stand where the attribute stands, wherever it was written itself.
macro_rules! by_text {
    ($name:ident, $pinned:literal, $key:literal) => {
        #[idempotent(key = $key, retention = "1d", name = $pinned)]
        async fn $name(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> sqlx::Result<()> {
            write(tx, &msg.id).await
        }
    };
}

by_text!(of_a_string, "made.of_a_string", "msg.id, msg.kind as u8");
by_field!(by_id, "made.by_id", id);
by_field!(by_id_and_literal, "made.by_id_and_literal", id; "v2");

#[tokio::test]
async fn handlers_made_by_a_macro_apply_once() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "e1", of_an_expression(&engine, &paid("e1")));
        applies_once!(db, "t1", of_a_tuple(&engine, &paid("t1")));
        applies_once!(db, "s1", of_a_string(&engine, &paid("s1")));
        applies_once!(db, "id", by_id(&engine, &paid("i1")));
        assert!(engine.handle::<by_id_and_literal>(&paid("l1"), &()).await.unwrap().is_applied());
    })
    .await;
}

#[test]
fn string_and_native_parts_are_one_key_and_one_text() {
    assert_eq!(of_a_tuple::key(&paid("x")), of_a_string::key(&paid("x")));
    assert_eq!(of_a_tuple::META.key, of_a_string::META.key);
    assert_eq!(of_a_string::META.key, ["msg.id", "msg.kind as u8"]);
    assert_eq!(of_an_expression::META.retention, Some(WINDOW));
    assert_eq!(of_an_expression::META.redelivery, []);
    assert_eq!(of_an_expression::META.summary, "Made of an expression.");
    assert_eq!(by_id_and_literal::key(&paid("x")).unwrap().as_str(), "1/s:x/s:v2");
}

/// The broker's own window, as it would stand beside its configuration.
const BROKER: Retention = Retention::days(4);

#[idempotent(key(msg.id), retention = "7d", redelivery(broker = BROKER, replay = "2d"), name = "macros.redelivered")]
async fn redelivered(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> sqlx::Result<()> {
    write(tx, &msg.id).await
}

#[test]
fn redelivery_windows_are_registered_in_their_order() {
    let windows: Vec<_> =
        redelivered::META.redelivery.iter().map(|window| (window.source, window.length.to_string())).collect();
    assert_eq!(windows, [("broker", "4d".to_owned()), ("replay", "2d".to_owned())]);
}
