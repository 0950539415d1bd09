//! Handlers that a `macro_rules!` makes of identifiers, expressions, literals, types and paths.

#![deny(warnings)]

use idem_runtime::{Policy, Retention, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: String,
    kind: u8,
}

const WEEK: Retention = Retention::days(7);
const PAYMENTS: Policy = Policy::retention("7d").redelivery([("broker", "1d")]);

macro_rules! by_ident {
    ($name:ident, $($field:ident)*) => {
        #[idempotent(key($(msg.$field),*), retention = "7d")]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

macro_rules! by_expr {
    ($name:ident, $msg:ident, $($part:expr),*; $keeps:expr, $at:expr) => {
        #[idempotent(key($($part),*), retention = $keeps, redelivery(broker = $at), fingerprint($($part),*))]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, $msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

macro_rules! by_literal {
    ($name:ident, $key:literal, $keeps:literal, $pinned:literal) => {
        #[idempotent(key = $key, retention = $keeps, name = $pinned)]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

macro_rules! by_type {
    ($name:ident, $tx:ty, $msg:ty => $out:ty, $policy:path) => {
        #[idempotent(key(msg.id), policy = $policy)]
        async fn $name(_tx: $tx, msg: $msg) -> $out {
            Ok(())
        }
    };
}

macro_rules! without_key {
    ($natural:ident, $ping:ident, $reason:literal, $loss:expr, $tx:ty, $msg:ty, $body:expr) => {
        #[naturally_idempotent(reason = $reason)]
        async fn $natural(_tx: $tx, _msg: $msg) -> Result<u8, sqlx::Error> {
            $body
        }

        #[at_most_once(reason = $reason, loss = $loss)]
        async fn $ping(_msg: $msg) -> Result<u8, sqlx::Error> {
            $body
        }
    };
}

macro_rules! through {
    ($($tokens:tt)*) => { $($tokens)* };
}

by_ident!(idents, id kind);
by_expr!(exprs, paid, paid.id, paid.kind as u32; WEEK, "1d");
by_expr!(text_exprs, paid, paid.id, paid.kind; "7d", Retention::days(2));
by_literal!(literals, "msg.id, msg.kind", "7d", "made.literals");
by_type!(types, &mut Transaction<'_, Sqlite>, &Paid => Result<(), sqlx::Error>, self::PAYMENTS);
by_type!(moved, &mut sqlx::SqliteConnection, Paid => Result<(), sqlx::Error>, PAYMENTS);
without_key!(natural, ping, "the tests say so", "nothing at all", &mut Transaction<'_, Sqlite>, &Paid, Ok(7));

through! {
    #[idempotent(key(msg.id), retention = "7d")]
    async fn tokens(_tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

fn main() {
    let msg = Paid { id: "1".into(), kind: 2 };
    assert_eq!(idents::key(&msg), literals::key(&msg));
    assert_eq!(exprs::key(&msg).unwrap().as_str(), "1/s:1/i:2");
    assert_eq!(exprs::META.retention, text_exprs::META.retention);
    assert_eq!(types::META.policy, Some("self::PAYMENTS"));
    assert_eq!((types::META.message, moved::META.message), ("Paid", "Paid"));
    let _ = (natural::META, ping::META, tokens::META, through_a_second::META);
}

macro_rules! outer {
    ($name:ident, $msg:ident, $part:expr) => { inner!($name, $msg, $part); };
}

macro_rules! inner {
    ($name:ident, $msg:ident, $part:expr) => {
        #[idempotent(key = $part, retention = "7d")]
        async fn $name(_tx: &mut Transaction<'_, Sqlite>, $msg: &Paid) -> Result<(), sqlx::Error> {
            Ok(())
        }
    };
}

outer!(through_a_second, msg, msg.id);
