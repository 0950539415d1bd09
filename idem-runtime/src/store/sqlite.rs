//! SQLite, embedded.

use futures_util::future::BoxFuture;
use sqlx::migrate::Migrator;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row, SqlSafeStr, SqlStr, Sqlite, Transaction};

use super::{
    Claimed, Clock, CommitError, Fault, Health, InPlace, KeyRow, NewKey, Settings, Statements, Store, driver_fault,
    in_place, schema,
};

const MIGRATIONS: &[(&str, &str)] = &[
    ("keys", include_str!("../../migrations/sqlite/0001_keys.sql")),
    ("retention", include_str!("../../migrations/sqlite/0002_retention.sql")),
    ("forgotten", include_str!("../../migrations/sqlite/0003_forgotten.sql")),
    ("rollout", include_str!("../../migrations/sqlite/0004_rollout.sql")),
    ("queue", include_str!("../../migrations/sqlite/0005_queue.sql")),
];

/// IMMEDIATE, since a transaction that turns writer later fails as busy at once. The savepoint is the mark of our
/// transaction: it vanishes with it, whoever ends it.
const BEGIN: &str = "BEGIN IMMEDIATE; SAVEPOINT idem_transaction_mark";

/// Fails when the savepoint is gone. A step of its own: here a round trip is a hop to the connection's thread, and
/// sqlx must send the COMMIT itself to keep its count of open transactions.
const PROVE: &str = "RELEASE idem_transaction_mark";

const CLAIM: &str = "\
    INSERT INTO idem_key (handler, event_key, claimed_at, claim, fingerprint) \
    VALUES (?1, ?2, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), ?3, ?4) \
    ON CONFLICT (handler, event_key) DO NOTHING RETURNING claimed_at * 1000";

/// `WHERE true`, or the parser would take what follows for a join's condition.
const CLAIM_ALL: &str = "\
    INSERT INTO idem_key (handler, event_key, claimed_at, claim, fingerprint) \
    SELECT ?1, CAST(value ->> 0 AS BLOB), CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), ?2, \
           unhex(value ->> 1) \
    FROM json_each(?3) WHERE true ORDER BY key \
    ON CONFLICT (handler, event_key) DO NOTHING RETURNING event_key, claimed_at * 1000";

const FIND: &str = "\
    SELECT claim, claimed_at * 1000 AS claimed_micros, \
           CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now_micros, fingerprint, result \
    FROM idem_key WHERE handler = ?1 AND event_key = ?2";

const STORE_RESULT: &str = "UPDATE idem_key SET result = ?4 WHERE handler = ?1 AND event_key = ?2 AND claim = ?3";

const SCHEMA_VERSION: &str = "SELECT max(version) FROM idem_schema WHERE success";

const TABLE_EXISTS: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'idem_schema'";

/// With a shared cache, `read_uncommitted` shows keys that may still be rolled back.
const HEALTH: &str = "\
    SELECT 'SQLite ' || sqlite_version(), CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, \
           (SELECT CASE read_uncommitted WHEN 1 THEN 'read uncommitted' ELSE 'serializable' END \
            FROM pragma_read_uncommitted)";

const INDEXES: &str = "\
    SELECT list.\"unique\" = 1 AND list.partial = 0, \
           (SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info(list.name) ORDER BY seqno)) \
    FROM pragma_index_list('idem_key') AS list";

impl super::sealed::Sealed for Sqlite {}

crate::tx::connection_param!(Sqlite, SqliteConnection);

impl Store for Sqlite {
    /// The isolation is always serializable, and the wait is the connection's `busy_timeout`, repeated by the engine.
    fn statements<'a>(_: &'a mut SqliteConnection, settings: &'a Settings) -> BoxFuture<'a, sqlx::Result<Statements>> {
        let claim = CLAIM.into_sql_str();
        let statements = Statements {
            begin: BEGIN.into_sql_str(),
            begin_unkeyed: BEGIN.into_sql_str(),
            claim_timed: claim.clone(),
            claim,
            claim_all: CLAIM_ALL.into_sql_str(),
            persistent: settings.statement_cache,
        };
        Box::pin(async { Ok(statements) })
    }

    fn begin<'c>(conn: &'c mut SqliteConnection, begin: &SqlStr) -> BoxFuture<'c, sqlx::Result<Transaction<'c, Self>>> {
        Box::pin(conn.begin_with(begin.clone()))
    }

    fn claim<'c>(
        conn: &'c mut SqliteConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Claimed>> {
        Box::pin(async move {
            let row = sqlx::query(statements.claim.clone())
                .bind(new.handler)
                .bind(new.event_key.as_bytes())
                .bind(new.claim)
                .bind(new.fingerprint)
                .persistent(statements.persistent)
                .fetch_optional(conn)
                .await?;
            Ok(match row {
                // A statement has one time, from its first step to its last.
                Some(row) => {
                    let now_micros = row.try_get(0)?;
                    Claimed::New { clock: Some(Clock { claimed_micros: now_micros, now_micros }) }
                }
                None => Claimed::Taken,
            })
        })
    }

    fn find<'c>(
        conn: &'c mut SqliteConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Option<KeyRow>>> {
        Box::pin(async move {
            let row = sqlx::query(FIND)
                .bind(new.handler)
                .bind(new.event_key.as_bytes())
                .persistent(statements.persistent)
                .fetch_optional(conn)
                .await?;
            row.as_ref().map(super::key_row).transpose()
        })
    }

    fn store_result<'c>(
        conn: &'c mut SqliteConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
        result: &'c [u8],
    ) -> BoxFuture<'c, Result<(), CommitError>> {
        Box::pin(async move {
            let done = sqlx::query(STORE_RESULT)
                .bind(new.handler)
                .bind(new.event_key.as_bytes())
                .bind(new.claim)
                .bind(result)
                .persistent(statements.persistent)
                .execute(conn)
                .await
                .map_err(CommitError::Refused)?;
            super::exactly_one(done.rows_affected())
        })
    }

    fn commit(mut tx: Transaction<'_, Self>) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            prove(&mut tx).await?;
            // A transaction whose COMMIT fails stays open; dropping the object rolls it back.
            tx.commit().await.map_err(commit_error)
        })
    }

    fn rollback(mut tx: Transaction<'_, Self>) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            make_count_right(&mut tx).await;
            tx.rollback().await.is_ok()
        })
    }

    fn abandon(mut conn: PoolConnection<Self>) {
        // Dropping the transaction has queued a rollback on the connection's thread; the ping waits for it. Closing the
        // connection would lose a database in memory, so that is only for one that did not come clean.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if conn.ping().await.is_err() || conn.is_in_transaction() {
                conn.close_on_drop();
            }
        });
    }

    fn fault(error: &sqlx::Error) -> Fault {
        let Some(database) = error.as_database_error() else {
            return driver_fault(error);
        };
        let code: u32 = database.code().and_then(|code| code.parse().ok()).unwrap_or(0);
        // The low byte is the primary code: https://www.sqlite.org/rescode.html
        match code & 0xff {
            5 | 6 => Fault::LockTimeout,
            8 => Fault::ReadOnly,
            // I/O error, not a database, cannot be opened.
            10 | 14 | 26 => Fault::ConnectionLost,
            _ => Fault::Other,
        }
    }

    fn migrator() -> Migrator {
        schema::migrator(MIGRATIONS)
    }

    fn schema_version(conn: &mut SqliteConnection) -> BoxFuture<'_, sqlx::Result<Option<i64>>> {
        Box::pin(async move {
            let tables: i64 = sqlx::raw_sql(TABLE_EXISTS).fetch_one(&mut *conn).await?.try_get(0)?;
            if tables == 0 {
                return Ok(None);
            }
            sqlx::raw_sql(SCHEMA_VERSION).fetch_one(conn).await?.try_get(0)
        })
    }

    fn health(conn: &mut SqliteConnection) -> BoxFuture<'_, sqlx::Result<Health>> {
        Box::pin(async move {
            let row = sqlx::raw_sql(HEALTH).fetch_one(&mut *conn).await?;
            let rows = sqlx::raw_sql(INDEXES).fetch_all(conn).await?;
            let indexes = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            Ok(Health {
                version: row.try_get(0)?,
                now_micros: row.try_get(1)?,
                isolation: row.try_get(2)?,
                autovacuum: None,
                indexes: indexes.collect::<sqlx::Result<_>>()?,
            })
        })
    }
}

impl InPlace for Sqlite {
    fn commit_in_place(conn: &mut SqliteConnection) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            prove(conn).await?;
            in_place::commit::<Self>(conn).await.map_err(commit_error)
        })
    }

    fn rollback_in_place(conn: &mut SqliteConnection) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            make_count_right(conn).await;
            in_place::rollback::<Self>(conn).await
        })
    }
}

async fn prove(conn: &mut SqliteConnection) -> Result<(), CommitError> {
    let Err(error) = sqlx::raw_sql(PROVE).execute(&mut *conn).await else {
        return Ok(());
    };
    let lost = error.as_database_error().is_none();
    Sqlite::rollback_in_place(conn).await;
    Err(if lost { CommitError::Lost(error) } else { CommitError::Escaped(error) })
}

fn commit_error(error: sqlx::Error) -> CommitError {
    match error.as_database_error() {
        Some(_) => CommitError::Refused(error),
        None => CommitError::Lost(error),
    }
}

/// sqlx counts the transactions that it opened, and a COMMIT behind its back leaves the count at one for good. Opening one
/// more makes the count right, and rolling that back makes it zero.
async fn make_count_right(conn: &mut SqliteConnection) {
    // An error means that one is open, as it should be.
    let _ = sqlx::raw_sql("BEGIN").execute(conn).await;
}
