//! MySQL and MariaDB.

#![allow(clippy::disallowed_types, reason = "what is put in is printable ASCII without quotes, or hexadecimal")]

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, MySql, Row};

use super::super::mysql::{ER_DUP_ENTRY, number};
use super::super::{Claimed, Clock, KeyRow, NewKey, Statements, hex};
use super::{Batch, in_order, key_rows};

/// How often the new ones among the keys are looked for, before somebody else is taken to be faster.
const TRIES: u32 = 5;

/// What is committed, whatever the transaction saw first.
const TAKEN: &str =
    "SELECT event_key FROM idem_key WHERE handler = '{handler}' AND event_key IN ({keys}) LOCK IN SHARE MODE";

const CLOCKS: &str = "\
    SELECT event_key, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at), \
           TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) \
    FROM idem_key WHERE handler = '{handler}' AND event_key IN ({keys})";

const FIND_ALL: &str = "\
    SELECT event_key, claim, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at) AS claimed_micros, \
           TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_micros, fingerprint, result \
    FROM idem_key WHERE handler = '{handler}' AND event_key IN ({keys})";

/// A statement about some keys of a handler, for the text protocol: a prepared one would be another for each length.
fn about(sql: &str, keys: &[NewKey<'_>]) -> AssertSqlSafe<String> {
    let list: Vec<_> = keys.iter().map(|key| format!("'{}'", key.event_key)).collect();
    let handler = keys.first().map_or("", |key| key.handler);
    AssertSqlSafe(sql.replace("{handler}", handler).replace("{keys}", &list.join(",")))
}

fn insert(claim_all: &str, keys: &[NewKey<'_>]) -> AssertSqlSafe<String> {
    let row = |key: &NewKey<'_>| {
        let fingerprint = key.fingerprint.map_or_else(|| "NULL".to_owned(), |digest| format!("X'{}'", hex(digest)));
        format!("('{}','{}',UTC_TIMESTAMP(6),{},{fingerprint})", key.handler, key.event_key, key.claim)
    };
    AssertSqlSafe(format!("{claim_all}{}", keys.iter().map(row).collect::<Vec<_>>().join(",")))
}

impl Batch for MySql {
    /// The statement is all or nothing, and says of one key that it is taken. So those that are taken are read and left
    /// out, until all others are in.
    fn claim_all<'c>(
        conn: &'c mut MySqlConnection,
        statements: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Claimed>>> {
        Box::pin(async move {
            let (mut new, mut tries) = (keys.to_vec(), 1);
            while !new.is_empty() {
                match sqlx::raw_sql(insert(statements.claim_all.as_str(), &new)).execute(&mut *conn).await {
                    Ok(_) => break,
                    Err(error) if number(&error) == Some(ER_DUP_ENTRY) && tries < TRIES => tries += 1,
                    Err(error) => return Err(error),
                }
                let taken = sqlx::raw_sql(about(TAKEN, &new)).fetch_all(&mut *conn).await?;
                let taken = taken.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<HashSet<Vec<u8>>>>()?;
                new.retain(|key| !taken.contains(key.event_key.as_bytes()));
            }
            let mut clocks = std::collections::HashMap::new();
            if new.iter().any(|key| key.timed) {
                for row in sqlx::raw_sql(about(CLOCKS, &new)).fetch_all(conn).await? {
                    let clock = Clock { claimed_micros: row.try_get(1)?, now_micros: row.try_get(2)? };
                    clocks.insert(row.try_get::<Vec<u8>, _>(0)?, clock);
                }
            }
            let new: HashSet<&str> = new.iter().map(|key| key.event_key).collect();
            let claimed = |key: &NewKey<'_>| match new.contains(key.event_key) {
                true => Claimed::New { clock: clocks.remove(key.event_key.as_bytes()) },
                false => Claimed::Taken,
            };
            Ok(keys.iter().map(claimed).collect())
        })
    }

    fn find_all<'c>(
        conn: &'c mut MySqlConnection,
        _: &'c Statements,
        keys: &'c [NewKey<'c>],
    ) -> BoxFuture<'c, sqlx::Result<Vec<Option<KeyRow>>>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let rows = sqlx::raw_sql(about(FIND_ALL, keys)).fetch_all(conn).await?;
            Ok(in_order(keys, key_rows(&rows)?))
        })
    }

    /// A deadlock ends the transaction, and a handler that swallows the error goes on outside of it.
    fn intact(conn: &mut MySqlConnection) -> BoxFuture<'_, bool> {
        Box::pin(async { sqlx::raw_sql(super::REMARK).execute(conn).await.is_ok() })
    }
}
