//! SQLite. A list of keys travels as JSON, so that one statement serves every length.

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Row, Sqlite};

use super::super::{Claimed, Clock, KeyRow, NewKey, Statements};
use super::{Batch, in_order, key_rows};

const FIND_ALL: &str = "\
    SELECT event_key, claim, claimed_at * 1000 AS claimed_micros, \
           CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now_micros, fingerprint, result \
    FROM idem_key WHERE handler = ?1 AND event_key IN (SELECT CAST(value ->> 0 AS BLOB) FROM json_each(?2))";

/// Keys are printable ASCII without quotes and backslashes, and a fingerprint is hexadecimal.
fn as_json(keys: &[NewKey<'_>]) -> String {
    let one = |key: &NewKey<'_>| match key.fingerprint {
        None => format!("[\"{}\",null]", key.event_key),
        Some(fingerprint) => format!("[\"{}\",\"{}\"]", key.event_key, super::super::hex(fingerprint)),
    };
    format!("[{}]", keys.iter().map(one).collect::<Vec<_>>().join(","))
}

impl Batch for Sqlite {
    fn claim_all<'c>(
        conn: &'c mut SqliteConnection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Claimed>>> {
        Box::pin(async move {
            let Some(first) = keys.first() else { return Ok(Vec::new()) };
            let rows = sqlx::query(statements.claim_all.clone())
                .bind(first.handler)
                .bind(first.claim)
                .bind(as_json(keys))
                .persistent(statements.persistent)
                .fetch_all(conn)
                .await?;
            let new = rows.iter().map(|row| {
                let now_micros = row.try_get(1)?;
                let clock = Clock { claimed_micros: now_micros, now_micros };
                Ok((row.try_get(0)?, Claimed::New { clock: Some(clock) }))
            });
            let new = in_order(keys, new.collect::<sqlx::Result<_>>()?);
            Ok(new.into_iter().map(|claimed| claimed.unwrap_or(Claimed::Taken)).collect())
        })
    }

    fn find_all<'c>(
        conn: &'c mut SqliteConnection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Option<KeyRow>>>> {
        Box::pin(async move {
            let Some(first) = keys.first() else { return Ok(Vec::new()) };
            let rows = sqlx::query(FIND_ALL)
                .bind(first.handler)
                .bind(as_json(keys))
                .persistent(statements.persistent)
                .fetch_all(conn)
                .await?;
            Ok(in_order(keys, key_rows(&rows)?))
        })
    }

    fn intact(conn: &mut SqliteConnection) -> BoxFuture<'_, bool> {
        Box::pin(async { sqlx::raw_sql(super::REMARK).execute(conn).await.is_ok() })
    }
}
