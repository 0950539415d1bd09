//! What handlers return.

use std::error::Error;

use idem_runtime::{ErrorKind, Failure, Outcome, idempotent};
use idem_tests::Db;
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, Transaction};

use super::{Paid, paid, write};

type Tx<'c> = Transaction<'c, Sqlite>;

/// Not a `std::error::Error`, not even `Display`.
#[derive(Debug, PartialEq)]
enum Refusal {
    TooLate,
    Database,
}

impl From<sqlx::Error> for Refusal {
    fn from(_: sqlx::Error) -> Self {
        Self::Database
    }
}

#[idempotent(key(msg.id), retention = "1d", name = "errors.custom")]
async fn custom(tx: &mut Tx<'_>, msg: &Paid) -> Result<(), Refusal> {
    write(tx, &msg.id).await?;
    Err(Refusal::TooLate)
}

#[idempotent(key(msg.id), retention = "1d", name = "errors.boxed")]
async fn boxed(tx: &mut Tx<'_>, msg: &Paid) -> Result<(), Box<dyn Error + Send + Sync>> {
    write(tx, &msg.id).await?;
    Err("boxed")?
}

#[idempotent(key(msg.id), retention = "1d", name = "errors.anyhow")]
async fn with_anyhow(tx: &mut Tx<'_>, msg: &Paid) -> anyhow::Result<()> {
    write(tx, &msg.id).await?;
    anyhow::bail!("anyhow")
}

#[tokio::test]
async fn the_handlers_own_error_comes_back_and_nothing_is_stored() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let msg = paid("e1");
        let Err(Failure::Handler(failed)) = custom(&engine, &msg).await else { panic!("must fail") };
        assert_eq!(failed.error, Refusal::TooLate);
        let Err(Failure::Handler(failed)) = boxed(&engine, &msg).await else { panic!("must fail") };
        assert_eq!(failed.error.to_string(), "boxed");
        let Err(Failure::Handler(failed)) = with_anyhow(&engine, &msg).await else { panic!("must fail") };
        assert_eq!(failed.error.to_string(), "anyhow");
        assert_eq!((db.effects("e1").await, db.keys().await), (0, 0));
    })
    .await;
}

#[allow(clippy::needless_return, reason = "a `return` in a nested block leaves that block alone")]
/// [B05] Each way out of a body, taken by the number in the message.
#[idempotent(key(way), retention = "1d", name = "errors.ways_out")]
async fn ways_out(tx: &mut Tx<'_>, way: &u8) -> sqlx::Result<&'static str> {
    write(tx, &format!("way {way}")).await?;
    if *way == 1 {
        return Ok("early");
    }
    let parse = |text: &str| {
        if text.is_empty() {
            return None;
        }
        text.parse::<u8>().ok()
    };
    let number = async { return parse("7").unwrap_or_default() }.await;
    let found = 'search: {
        for n in 0..number {
            if n == *way {
                break 'search n;
            }
        }
        return Err(sqlx::Error::RowNotFound);
    };
    if found == 3 {
        Err(sqlx::Error::WorkerCrashed)?;
    }
    Ok("late")
}

#[tokio::test]
async fn every_way_out_of_a_body_ends_as_its_value_says() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        for (way, value) in [(1, Some("early")), (2, Some("late")), (3, None), (9, None)] {
            let outcome = ways_out(&engine, &way).await;
            assert_eq!(outcome.ok().and_then(Outcome::into_value), value);
            assert_eq!(db.effects(&format!("way {way}")).await, i64::from(value.is_some()));
        }
        assert_eq!(db.keys().await, 2);
    })
    .await;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
    note: Option<String>,
}

#[idempotent(key(msg.id), retention = "1d", replay, name = "errors.replay")]
async fn replayed(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<Receipt> {
    write(tx, &msg.id).await?;
    Ok(Receipt { number: 7, note: Some(msg.id.clone()) })
}

#[tokio::test]
async fn a_duplicate_is_given_the_first_result() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let first = replayed(&engine, &paid("r1")).await.unwrap();
        let second = replayed(&engine, &paid("r1")).await.unwrap();
        assert!(first.is_applied() && second.is_duplicate());
        assert_eq!(first.into_value(), second.into_value());
    })
    .await;
}

/// [B13] An event without an identifier is refused, never a duplicate of another.
#[tokio::test]
async fn a_missing_identifier_is_no_key() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        for _ in 0..2 {
            let Err(failure) = replayed(&engine, &paid("")).await else { panic!("must be refused") };
            assert_eq!(failure.kind(), Some(ErrorKind::InvalidKey));
        }
        assert_eq!(db.keys().await, 0);
    })
    .await;
}
