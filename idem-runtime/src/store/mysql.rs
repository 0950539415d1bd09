//! MySQL and MariaDB.

#![allow(clippy::disallowed_types, reason = "this is the place the lint points to; what is put in is the engine's own")]

use futures_util::future::BoxFuture;
use sqlx::migrate::Migrator;
use sqlx::mysql::{MySqlConnection, MySqlDatabaseError};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Connection, MySql, Row, SqlSafeStr, SqlStr, Transaction};

use super::{
    CLAIM_WAIT, Claimed, Clock, CommitError, Fault, Health, InPlace, Isolation, KeyRow, NewKey, Settings, Statements,
    Store, driver_fault, in_place, schema,
};

const MIGRATIONS: &[(&str, &str)] = &[
    ("keys", include_str!("../../migrations/mysql/0001_keys.sql")),
    ("retention", include_str!("../../migrations/mysql/0002_retention.sql")),
    ("forgotten", include_str!("../../migrations/mysql/0003_forgotten.sql")),
    ("rollout", include_str!("../../migrations/mysql/0004_rollout.sql")),
    ("queue", include_str!("../../migrations/mysql/0005_queue.sql")),
];

/// The mark of our transaction is a savepoint: it vanishes with the transaction, whoever ends it, and releasing one that
/// is not there is an error, which keeps the `COMMIT` behind it from running.
const PROVE_AND_COMMIT: &str = "RELEASE SAVEPOINT idem_transaction_mark; COMMIT";

const CLOCK: &str = "\
    SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at), \
           TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) \
    FROM idem_key WHERE handler = ? AND event_key = ?";

const FIND: &str = "\
    SELECT claim, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at) AS claimed_micros, \
           TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_micros, fingerprint, result \
    FROM idem_key WHERE handler = ? AND event_key = ?";

const STORE_RESULT: &str = "UPDATE idem_key SET result = ? WHERE handler = ? AND event_key = ? AND claim = ?";

const SCHEMA_VERSION: &str = "SELECT MAX(version) FROM idem_schema WHERE success";

const TABLE_EXISTS: &str = "\
    SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'idem_schema'";

/// Waits for a minute; a lock's name is the server's, so the database is part of it.
const LOCK_MIGRATIONS: &str = "SELECT GET_LOCK(CONCAT('idem_schema.', LEFT(MD5(DATABASE()), 16)), 60)";

const UNLOCK_MIGRATIONS: &str = "SELECT RELEASE_LOCK(CONCAT('idem_schema.', LEFT(MD5(DATABASE()), 16)))";

pub(super) const ER_DUP_ENTRY: u16 = 1062;

const HEALTH: &str = "SELECT VERSION(), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// MariaDB before 11.1 knows only the second name, MySQL since 8 only the first.
const ISOLATION: &str = "SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')";

const INDEXES: &str = "\
    SELECT MAX(non_unique) = 0, CAST(GROUP_CONCAT(column_name ORDER BY seq_in_index) AS CHAR) \
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'idem_key' GROUP BY index_name";

impl super::sealed::Sealed for MySql {}

crate::tx::connection_param!(MySql, MySqlConnection);

/// A plain insert: `INSERT IGNORE` would hide truncation, and `ON DUPLICATE KEY UPDATE` reports one row for new and
/// duplicate alike. MariaDB takes the bound of the wait for this one statement; to MySQL that is a comment, and its own
/// `innodb_lock_wait_timeout` holds.
fn claim_sql(settings: &Settings, rows: &str) -> SqlStr {
    let wait = settings.claim_wait.unwrap_or(CLAIM_WAIT).as_secs().max(1);
    AssertSqlSafe(format!(
        "/*M!100101 SET STATEMENT innodb_lock_wait_timeout = {wait} FOR */ \
         INSERT INTO idem_key (handler, event_key, claimed_at, claim, fingerprint) VALUES {rows}"
    ))
    .into_sql_str()
}

fn begin_sql(settings: &Settings) -> SqlStr {
    match settings.isolation {
        None => "START TRANSACTION; SAVEPOINT idem_transaction_mark",
        Some(Isolation::ReadCommitted) => {
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; SAVEPOINT idem_transaction_mark"
        }
        Some(Isolation::RepeatableRead) => {
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION; SAVEPOINT idem_transaction_mark"
        }
        Some(Isolation::Serializable) => {
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION; SAVEPOINT idem_transaction_mark"
        }
    }
    .into_sql_str()
}

pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    Some(error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?.number())
}

impl Store for MySql {
    fn statements<'a>(_: &'a mut MySqlConnection, settings: &'a Settings) -> BoxFuture<'a, sqlx::Result<Statements>> {
        let claim = claim_sql(settings, "(?, ?, UTC_TIMESTAMP(6), ?, ?)");
        let statements = Statements {
            begin: begin_sql(settings),
            begin_unkeyed: begin_sql(settings),
            claim_timed: claim.clone(),
            claim,
            claim_all: claim_sql(settings, ""),
            persistent: settings.statement_cache,
        };
        Box::pin(async { Ok(statements) })
    }

    fn begin<'c>(conn: &'c mut MySqlConnection, begin: &SqlStr) -> BoxFuture<'c, sqlx::Result<Transaction<'c, Self>>> {
        Box::pin(conn.begin_with(begin.clone()))
    }

    fn claim<'c>(
        conn: &'c mut MySqlConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Claimed>> {
        Box::pin(async move {
            let inserted = sqlx::query(statements.claim.clone())
                .bind(new.handler)
                .bind(new.event_key.as_bytes())
                .bind(new.claim)
                .bind(new.fingerprint)
                .persistent(statements.persistent)
                .execute(&mut *conn)
                .await;
            match inserted {
                // MySQL has no RETURNING, so the clock is a round trip of its own; only `occurred_at` asks for it.
                Ok(_) if new.timed => {
                    let row = sqlx::query(CLOCK)
                        .bind(new.handler)
                        .bind(new.event_key.as_bytes())
                        .persistent(statements.persistent)
                        .fetch_one(conn)
                        .await?;
                    let clock = Clock { claimed_micros: row.try_get(0)?, now_micros: row.try_get(1)? };
                    Ok(Claimed::New { clock: Some(clock) })
                }
                Ok(_) => Ok(Claimed::New { clock: None }),
                Err(error) if number(&error) == Some(ER_DUP_ENTRY) => Ok(Claimed::Taken),
                Err(error) => Err(error),
            }
        })
    }

    fn find<'c>(
        conn: &'c mut MySqlConnection,
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
        conn: &'c mut MySqlConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
        result: &'c [u8],
    ) -> BoxFuture<'c, Result<(), CommitError>> {
        Box::pin(async move {
            let done = sqlx::query(STORE_RESULT)
                .bind(result)
                .bind(new.handler)
                .bind(new.event_key.as_bytes())
                .bind(new.claim)
                .persistent(statements.persistent)
                .execute(conn)
                .await
                .map_err(CommitError::Refused)?;
            super::exactly_one(done.rows_affected())
        })
    }

    fn commit(mut tx: Transaction<'_, Self>) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move { Self::commit_in_place(&mut tx).await })
    }

    fn rollback(tx: Transaction<'_, Self>) -> BoxFuture<'_, bool> {
        Box::pin(async { tx.rollback().await.is_ok() })
    }

    fn abandon(mut conn: PoolConnection<Self>) {
        // The server rolls back when the connection ends. Whatever was in flight on it stays there.
        conn.close_on_drop();
    }

    fn fault(error: &sqlx::Error) -> Fault {
        let Some(number) = number(error) else {
            return driver_fault(error);
        };
        match number {
            // Deadlock; MariaDB's "record has changed since last read".
            1213 | 1020 => Fault::Contention,
            1205 => Fault::LockTimeout,
            1290 | 1792 | 1836 => Fault::ReadOnly,
            1146 => Fault::Schema,
            // Shutdown, killed, aborted, network errors, too many connections, idle too long; wrong user or database.
            1044 | 1045 | 1049 | 1053 | 1927 | 1152 | 1158..=1161 | 1184 | 1040 | 4031 => Fault::ConnectionLost,
            _ => Fault::Other,
        }
    }

    fn migrator() -> Migrator {
        let mut migrator = schema::migrator(MIGRATIONS);
        // sqlx waits with a timeout of -1, which MariaDB refuses with a warning and no lock.
        migrator.set_locking(false);
        migrator
    }

    fn lock_migrations(conn: &mut MySqlConnection, lock: bool) -> BoxFuture<'_, sqlx::Result<()>> {
        Box::pin(async move {
            let taken: Option<i64> =
                sqlx::query_scalar(if lock { LOCK_MIGRATIONS } else { UNLOCK_MIGRATIONS }).fetch_one(conn).await?;
            // Zero is a lock that another node holds for longer than the wait.
            if taken == Some(1) { Ok(()) } else { Err(sqlx::Error::PoolTimedOut) }
        })
    }

    fn schema_version(conn: &mut MySqlConnection) -> BoxFuture<'_, sqlx::Result<Option<i64>>> {
        Box::pin(async move {
            let tables: i64 = sqlx::query_scalar(TABLE_EXISTS).fetch_one(&mut *conn).await?;
            if tables == 0 {
                return Ok(None);
            }
            sqlx::query_scalar(SCHEMA_VERSION).fetch_one(conn).await
        })
    }

    fn health(conn: &mut MySqlConnection) -> BoxFuture<'_, sqlx::Result<Health>> {
        Box::pin(async move {
            let row = sqlx::query(HEALTH).fetch_one(&mut *conn).await?;
            let isolation: String = sqlx::query(ISOLATION).fetch_one(&mut *conn).await?.try_get(1)?;
            let rows = sqlx::query(INDEXES).fetch_all(conn).await?;
            let indexes = rows.iter().map(|row| Ok((row.try_get::<i64, _>(0)? == 1, row.try_get(1)?)));
            Ok(Health {
                version: row.try_get(0)?,
                now_micros: row.try_get(1)?,
                isolation: isolation.to_lowercase().replace('-', " "),
                autovacuum: None,
                indexes: indexes.collect::<sqlx::Result<_>>()?,
            })
        })
    }
}

impl InPlace for MySql {
    fn commit_in_place(conn: &mut MySqlConnection) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(in_place::prove_and_commit::<Self>(conn, PROVE_AND_COMMIT, commit_error))
    }

    fn rollback_in_place(conn: &mut MySqlConnection) -> BoxFuture<'_, bool> {
        Box::pin(in_place::rollback::<Self>(conn))
    }
}

/// An error before the proof's own result is the proof's; one after it is the commit's.
fn commit_error(error: sqlx::Error, proven: bool) -> CommitError {
    match number(&error) {
        _ if MySql::fault(&error) == Fault::ConnectionLost => CommitError::Lost(error),
        None => CommitError::Lost(error),
        Some(_) if proven => CommitError::Refused(error),
        Some(_) => CommitError::Escaped(error),
    }
}
