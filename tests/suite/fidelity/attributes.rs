//! Attributes above and below ours, and handlers in unusual places.

use idem_runtime::idempotent;
use idem_tests::{Db, Logs};
use sqlx::{Sqlite, Transaction};
use tracing::Level;

use super::{Paid, applies_once, paid, write};

type Tx<'c> = Transaction<'c, Sqlite>;

/// Is documented, linted, and conditional.
///
/// # Errors
///
/// Those of the database.
#[cfg(not(any()))]
#[must_use = "it says whether the event was new"]
#[idempotent(key(msg.id), retention = "1d", name = "attributes.many")]
#[cfg_attr(all(), allow(clippy::no_effect_underscore_binding))]
#[allow(unused_mut, reason = "the lint level must reach the body")]
#[deny(unused_variables)]
#[inline]
async fn many(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
    let mut _used = &msg.kind;
    write(tx, &msg.id).await
}

#[cfg(any())]
#[idempotent(key(msg.id), retention = "1d", name = "attributes.many")]
async fn many(tx: &mut Tx<'_>, msg: &NotThere) -> sqlx::Result<()> {
    nobody_sees_this()
}

#[expect(unused_variables, reason = "expected of the body alone")]
#[idempotent(key(msg.id), retention = "1d", name = "attributes.expects")]
async fn expects(tx: &mut Tx<'_>, msg: &Paid, unused: &u8) -> sqlx::Result<()> {
    write(tx, &msg.id).await
}

#[tracing::instrument(skip_all, fields(id = %msg.id), err)]
#[idempotent(key(msg.id), retention = "1d", name = "attributes.above")]
async fn above(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
    tracing::info!("in the body");
    write(tx, &msg.id).await
}

#[idempotent(key(msg.id), retention = "1d", name = "attributes.below")]
#[tracing::instrument(skip_all, name = "below", fields(id = %msg.id))]
async fn below(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
    tracing::info!("in the body");
    write(tx, &msg.id).await
}

#[deprecated = "use `many`"]
#[idempotent(key(msg.id), retention = "1d", name = "attributes.deprecated")]
async fn old(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
    write(tx, &msg.id).await
}

#[tokio::test]
async fn attributes_reach_what_they_speak_of() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "m1", many(&engine, &paid("m1")));
        applies_once!(db, "x1", expects(&engine, &paid("x1"), &0));
        let (logs, _guard) = Logs::capture();
        applies_once!(db, "a1", above(&engine, &paid("a1")));
        applies_once!(db, "b1", below(&engine, &paid("b1")));
        let lines = logs.up_to(Level::INFO);
        assert_eq!(lines.iter().filter(|line| line.contains("in the body")).count(), 2, "{lines:#?}");
        #[expect(deprecated, reason = "that is what the attribute says to callers")]
        let outcome = old(&engine, &paid("o1")).await;
        assert!(outcome.unwrap().is_applied());
    })
    .await;
}

#[tokio::test]
async fn a_handler_inside_a_function_sees_its_neighbours() {
    struct Local {
        id: u8,
    }
    const NOTE: &str = "inside";

    #[idempotent(key(msg.id), retention = "1d", name = "attributes.inside")]
    async fn inside(tx: &mut Tx<'_>, msg: &Local) -> sqlx::Result<()> {
        write(tx, &format!("{NOTE} {}", msg.id)).await
    }

    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "inside 7", inside(&engine, &Local { id: 7 }));
        assert!(engine.handle::<inside>(&Local { id: 7 }, &()).await.unwrap().is_duplicate());
    })
    .await;
}

mod elsewhere {
    use super::{Paid, Tx, write};

    #[idem_runtime::idempotent(key(msg.id), retention = "1d", name = "attributes.public", crate = idem_runtime)]
    pub(in super::super) async fn visible(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
        write(tx, &msg.id).await
    }
}

/// One `use` brings the function and the type.
#[tokio::test]
async fn visibility_is_the_users() {
    use elsewhere::visible;

    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "v1", visible(&engine, &paid("v1")));
        assert_eq!(visible::META.name, "attributes.public");
        let mut tx = db.pool(1).await.begin().await.unwrap();
        visible::apply_in(&mut tx, &paid("v2")).await.unwrap();
    })
    .await;
}
