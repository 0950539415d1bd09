//! PostgreSQL.

use futures_util::future::BoxFuture;
use sqlx::postgres::PgConnection;
use sqlx::{Postgres, Row};

use super::super::{Claimed, Clock, KeyRow, NewKey, Statements};
use super::{Batch, in_order, key_rows};

const FIND_ALL: &str = "\
    SELECT event_key, claim, (date_part('epoch', claimed_at) * 1000000)::bigint AS claimed_micros, \
           (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now_micros, fingerprint, result \
    FROM idem_key WHERE handler = $1 AND event_key = ANY($2)";

fn bytes<'k>(keys: &[NewKey<'k>]) -> Vec<&'k [u8]> {
    keys.iter().map(|key| key.event_key.as_bytes()).collect()
}

impl Batch for Postgres {
    fn claim_all<'c>(
        conn: &'c mut PgConnection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Claimed>>> {
        Box::pin(async move {
            let Some(first) = keys.first() else { return Ok(Vec::new()) };
            let fingerprints: Vec<_> = keys.iter().map(|key| key.fingerprint).collect();
            let rows = sqlx::query(statements.claim_all.clone())
                .bind(first.handler)
                .bind(first.claim)
                .bind(bytes(keys))
                .bind(fingerprints)
                .persistent(statements.persistent)
                .fetch_all(conn)
                .await?;
            let new = rows.iter().map(|row| {
                let clock = Clock { claimed_micros: row.try_get(1)?, now_micros: row.try_get(2)? };
                Ok((row.try_get(0)?, Claimed::New { clock: Some(clock) }))
            });
            let new = in_order(keys, new.collect::<sqlx::Result<_>>()?);
            Ok(new.into_iter().map(|claimed| claimed.unwrap_or(Claimed::Taken)).collect())
        })
    }

    fn find_all<'c>(
        conn: &'c mut PgConnection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Option<KeyRow>>>> {
        Box::pin(async move {
            let Some(first) = keys.first() else { return Ok(Vec::new()) };
            let rows = sqlx::query(FIND_ALL)
                .bind(first.handler)
                .bind(bytes(keys))
                .persistent(statements.persistent)
                .fetch_all(conn)
                .await?;
            Ok(in_order(keys, key_rows(&rows)?))
        })
    }
}
