//! Parameters and handlers with the names that generated code could want for itself.

use idem_runtime::{Registry, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, Transaction};

use super::{applies_once, write};

type Tx<'c> = Transaction<'c, Sqlite>;

/// Two handlers with a parameter of each name, which key, fingerprint and body read: borrowed and moved.
macro_rules! handlers {
    ($($name:ident $borrowed:literal $moved:literal)*) => {
        mod borrowed {$(
            #[idem_runtime::idempotent(key($name.0), fingerprint($name.1), retention = "1d", name = $borrowed)]
            pub(super) async fn $name(db: &mut super::Tx<'_>, $name: &(u8, &[u8])) -> sqlx::Result<()> {
                super::write(db, &format!("{} {}", $borrowed, $name.0)).await
            }
        )*}

        mod moved {$(
            #[idem_runtime::idempotent(key($name.0), fingerprint($name.1), retention = "1d", name = $moved)]
            pub(super) async fn $name(db: &mut super::Tx<'_>, $name: (u8, Vec<u8>)) -> sqlx::Result<()> {
                super::write(db, &format!("{} {}", $moved, $name.0)).await
            }
        )*}

        #[tokio::test]
        async fn no_name_of_a_parameter_meets_one_of_ours() {
            Db::<Sqlite>::test(async |db| {
                let engine = db.engine(1).await;
                $(
                    applies_once!(db, concat!($borrowed, " 7"), borrowed::$name(&engine, &(7, b"body")));
                    applies_once!(db, concat!($moved, " 7"), moved::$name(&engine, (7, b"body".to_vec())));
                )*
            })
            .await;
        }
    };
}

handlers! {
    tx "names.tx" "names.tx.moved"
    pool "names.pool" "names.pool.moved"
    key "names.key" "names.key.moved"
    engine "names.engine" "names.engine.moved"
    result "names.result" "names.result.moved"
    attempt "names.attempt" "names.attempt.moved"
    error "names.error" "names.error.moved"
    message "names.message" "names.message.moved"
    state "names.state" "names.state.moved"
    returned "names.returned" "names.returned.moved"
    clone "names.clone" "names.clone.moved"
    receiver "names.receiver" "names.receiver.moved"
    meta "names.meta" "names.meta.moved"
    plan "names.plan" "names.plan.moved"
    body "names.body" "names.body.moved"
    conn "names.conn" "names.conn.moved"
    value "names.value" "names.value.moved"
    r#type "names.type" "names.type.moved"
    r#gen "names.gen" "names.gen.moved"
}

/// The transaction under a name of the engine's, and the message under one of the transaction's.
#[idempotent(key(tx), retention = "1d", name = "names.swapped")]
async fn swapped(engine: &mut Tx<'_>, tx: &u8) -> sqlx::Result<()> {
    write(engine, &format!("swapped {tx}")).await
}

struct Raw {
    r#type: String,
    r#gen: u8,
}

/// Without a name of its own, so that the registry shows the function's.
#[idempotent(key(msg.r#type, msg.r#gen), retention = "1d")]
async fn r#match(tx: &mut Tx<'_>, msg: &Raw) -> sqlx::Result<()> {
    write(tx, &format!("raw {} {}", msg.r#type, msg.r#gen)).await
}

#[idempotent(key = "msg.r#type, msg.r#gen", retention = "1d", name = "names.raw_in_string")]
async fn raw_in_string(tx: &mut Tx<'_>, msg: &Raw) -> sqlx::Result<()> {
    write(tx, &format!("raw in string {} {}", msg.r#type, msg.r#gen)).await
}

#[tokio::test]
async fn raw_and_swapped_names_work() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "swapped 7", swapped(&engine, &7));
        let msg = Raw { r#type: "t".to_owned(), r#gen: 3 };
        applies_once!(db, "raw t 3", r#match(&engine, &msg));
        applies_once!(db, "raw in string t 3", raw_in_string(&engine, &msg));
        assert_eq!(r#match::key(&msg), raw_in_string::key(&msg));
        assert_eq!(r#match::META.key, raw_in_string::META.key);
        assert!(Registry::load().unwrap().get("match").is_some());
    })
    .await;
}
