//! Type parameters, const parameters, `impl Trait` and lifetimes.

use std::fmt::Display;

use idem_runtime::{KeyPart, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, SqliteConnection, Transaction};

use super::{Paid, applies_once, paid, write};

#[idempotent(key(id, N), retention = "1d", name = "generics.all")]
async fn generic<T, const N: usize>(tx: &mut Transaction<'_, Sqlite>, id: &T, notes: [&str; N]) -> sqlx::Result<()>
where
    T: KeyPart + Display + Sync + ?Sized,
{
    for note in notes {
        write(tx, &format!("{note} {id}")).await?;
    }
    Ok(())
}

#[idempotent(key(id), retention = "1d", name = "generics.impl_trait")]
async fn impl_trait(tx: &mut SqliteConnection, id: impl KeyPart + Display + Send + Sync) -> sqlx::Result<()> {
    write(tx, &format!("impl {id}")).await
}

/// The parameter that only the return type mentions cannot be inferred from the arguments.
#[idempotent(key(msg.id), retention = "1d", name = "generics.result")]
async fn only_in_the_result<E: From<sqlx::Error> + Send>(tx: &mut SqliteConnection, msg: &Paid) -> Result<(), E> {
    Ok(write(tx, &msg.id).await?)
}

struct Borrowed<'m> {
    id: &'m str,
}

#[idempotent(key(msg.id), retention = "1d", name = "generics.lifetimes")]
async fn lifetimes<'m>(
    tx: &mut Transaction<'_, Sqlite>,
    msg: &'m Borrowed<'m>,
    other: &'m str,
) -> Result<&'m str, sqlx::Error> {
    write(tx, msg.id).await?;
    Ok(if msg.id.len() > other.len() { msg.id } else { other })
}

#[idempotent(key(msg.id), retention = "1d", name = "generics.named_transaction")]
async fn named_transaction<'c, 't>(tx: &'t mut Transaction<'c, Sqlite>, msg: &Borrowed<'_>) -> sqlx::Result<()>
where
    'c: 't,
{
    write(tx, msg.id).await
}

#[tokio::test]
async fn generic_handlers_apply_once() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "a text", generic(&engine, "text", ["a", "b"]));
        applies_once!(db, "a 7", generic(&engine, &7_u8, ["a"]));
        applies_once!(db, "impl 7", impl_trait(&engine, 7_u8));
        applies_once!(db, "e1", only_in_the_result::<sqlx::Error>(&engine, &paid("e1")));
        let msg = Borrowed { id: "borrowed" };
        applies_once!(db, "borrowed", lifetimes(&engine, &msg, "short"));
        applies_once!(db, "named", named_transaction(&engine, &Borrowed { id: "named" }));
        let longer = lifetimes(&engine, &Borrowed { id: "b2" }, "longer").await.unwrap().into_value();
        assert_eq!(longer, Some("longer"));
        assert_eq!(generic::key("text", &["a", "b"]).unwrap().as_str(), "1/s:text/i:2");
    })
    .await;
}
