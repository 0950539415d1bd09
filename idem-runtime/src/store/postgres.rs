//! PostgreSQL.

#![allow(clippy::disallowed_types, reason = "this is the place the lint points to; what is put in is the engine's own")]

use futures_util::future::BoxFuture;
use sqlx::migrate::Migrator;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Postgres, Row, SqlSafeStr, SqlStr, Transaction};

use super::{
    CLAIM_WAIT, Claimed, Clock, CommitError, Fault, Health, InPlace, Isolation, KeyRow, NewKey, Settings, Statements,
    Store, driver_fault, in_place, schema,
};

const MIGRATIONS: &[(&str, &str)] = &[
    ("keys", include_str!("../../migrations/postgres/0001_keys.sql")),
    ("retention", include_str!("../../migrations/postgres/0002_retention.sql")),
    ("forgotten", include_str!("../../migrations/postgres/0003_forgotten.sql")),
    ("rollout", include_str!("../../migrations/postgres/0004_rollout.sql")),
    ("queue", include_str!("../../migrations/postgres/0005_queue.sql")),
];

/// The mark of our transaction is a cursor: it vanishes with the transaction, whoever ends it, and closing one that is not
/// there is an error, which keeps the `COMMIT` behind it from running. (A setting does the same, but reading it is a query
/// with a plan; a savepoint would give every write a transaction number of its own.)
///
/// `AND CHAIN` leaves a transaction open for the `ROLLBACK` that sqlx sends when its object is dropped: without one, the
/// server would log a warning for every message. That `ROLLBACK` travels with whatever the connection does next.
const PROVE_AND_COMMIT: &str = "CLOSE idem_transaction_mark; COMMIT AND CHAIN";

/// The clock in microseconds since 1970. A double holds those exactly until the year 2255.
const NOW_MICROS: &str = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint";

const CLAIMED_MICROS: &str = "(date_part('epoch', claimed_at) * 1000000)::bigint";

const FIND: &str = "\
    SELECT claim, (date_part('epoch', claimed_at) * 1000000)::bigint AS claimed_micros, \
           (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now_micros, fingerprint, result \
    FROM idem_key WHERE handler = $1 AND event_key = $2";

/// Read with the simple protocol, like everything that is asked outside a transaction: behind a pooler in transaction mode
/// the two halves of a prepared statement could reach two servers.
const LOCK_TIMEOUT: &str = "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'";

const STORE_RESULT: &str = "UPDATE idem_key SET result = $4 WHERE handler = $1 AND event_key = $2 AND claim = $3";

const SCHEMA_VERSION: &str = "SELECT max(version) FROM idem_schema WHERE success";

const TABLE_EXISTS: &str = "SELECT to_regclass('idem_schema') IS NOT NULL";

/// What PostgreSQL calls read uncommitted is read committed.
const HEALTH: &str = "\
    SELECT 'PostgreSQL ' || current_setting('server_version'), \
           (date_part('epoch', clock_timestamp()) * 1000000)::bigint, \
           replace(current_setting('default_transaction_isolation'), 'uncommitted', 'committed'), \
           current_setting('autovacuum')::boolean AND NOT EXISTS ( \
               SELECT FROM pg_class, unnest(reloptions) AS option \
               WHERE pg_class.oid = to_regclass('idem_key') AND option ~* '^autovacuum_enabled=(false|off|no|0)$')";

/// An index that is not valid, as a `CREATE INDEX CONCURRENTLY` leaves it that failed, is none.
const INDEXES: &str = "\
    SELECT indisunique AND indpred IS NULL, array_to_string(ARRAY( \
               SELECT attname FROM unnest(indkey) WITH ORDINALITY AS part (number, place) \
               JOIN pg_attribute ON attrelid = indrelid AND attnum = part.number ORDER BY place), ',') \
    FROM pg_index WHERE indrelid = to_regclass('idem_key') AND indisvalid";

impl super::sealed::Sealed for Postgres {}

crate::tx::connection_param!(Postgres, PgConnection);

/// What bounds the wait for another delivery: a `lock_timeout` for the claim alone, with the session's own back in force as
/// soon as the key is in. A session that has one needs no other, and saves the server the work.
struct Bound {
    begin: String,
    returning: String,
}

impl Bound {
    fn new(settings: &Settings, session: &str) -> Self {
        let wait = match settings.claim_wait {
            Some(wait) => wait,
            None if session != "0" => return Self { begin: String::new(), returning: String::new() },
            None => CLAIM_WAIT,
        };
        Self {
            begin: format!("; SET LOCAL lock_timeout = {}", wait.as_millis()),
            returning: format!("set_config('lock_timeout', '{session}', true)"),
        }
    }
}

/// The rows of one key, and of many in their order.
const ONE: &str = "VALUES ($1, $2, $3, $4)";
const MANY: &str = "\
    SELECT $1, event_key, $2, fingerprint \
    FROM unnest($3::bytea[], $4::bytea[]) WITH ORDINALITY AS new (event_key, fingerprint, place) ORDER BY place";

fn claim_sql(rows: &str, returning: &[&str]) -> SqlStr {
    let returning: Vec<&str> = returning.iter().copied().filter(|column| !column.is_empty()).collect();
    let returning = if returning.is_empty() { String::new() } else { format!(" RETURNING {}", returning.join(", ")) };
    AssertSqlSafe(format!(
        "INSERT INTO idem_key (handler, event_key, claim, fingerprint) {rows} \
         ON CONFLICT (handler, event_key) DO NOTHING{returning}"
    ))
    .into_sql_str()
}

/// The look-up with the key as a literal: names and keys are printable ASCII without quotes and backslashes.
fn find_sql(new: NewKey<'_>) -> SqlStr {
    let text = FIND.replace("$1", &format!("'{}'", new.handler)).replace("$2", &format!("'{}'", new.event_key));
    AssertSqlSafe(text).into_sql_str()
}

fn begin_sql(settings: &Settings, bound: &str) -> SqlStr {
    let isolation = match settings.isolation {
        None => "",
        Some(Isolation::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
        Some(Isolation::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
        Some(Isolation::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
    };
    AssertSqlSafe(format!("BEGIN{isolation}; DECLARE idem_transaction_mark CURSOR FOR SELECT{bound}")).into_sql_str()
}

impl Store for Postgres {
    fn statements<'a>(conn: &'a mut PgConnection, settings: &'a Settings) -> BoxFuture<'a, sqlx::Result<Statements>> {
        Box::pin(async move {
            let lock_timeout: String = sqlx::raw_sql(LOCK_TIMEOUT).fetch_one(conn).await?.try_get(0)?;
            let bound = Bound::new(settings, &lock_timeout);
            Ok(Statements {
                begin: begin_sql(settings, &bound.begin),
                begin_unkeyed: begin_sql(settings, ""),
                claim: claim_sql(ONE, &[&bound.returning]),
                claim_timed: claim_sql(ONE, &[CLAIMED_MICROS, NOW_MICROS, &bound.returning]),
                claim_all: claim_sql(MANY, &["event_key", CLAIMED_MICROS, NOW_MICROS, &bound.returning]),
                persistent: settings.statement_cache,
            })
        })
    }

    fn begin<'c>(conn: &'c mut PgConnection, begin: &SqlStr) -> BoxFuture<'c, sqlx::Result<Transaction<'c, Self>>> {
        Box::pin(conn.begin_with(begin.clone()))
    }

    fn claim<'c>(
        conn: &'c mut PgConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Claimed>> {
        Box::pin(async move {
            let sql = if new.timed { &statements.claim_timed } else { &statements.claim };
            let insert = sqlx::query(sql.clone())
                .bind(new.handler)
                .bind(new.event_key.as_bytes())
                .bind(new.claim)
                .bind(new.fingerprint)
                .persistent(statements.persistent);
            if new.timed {
                return Ok(match insert.fetch_optional(conn).await? {
                    Some(row) => {
                        let clock = Clock { claimed_micros: row.try_get(0)?, now_micros: row.try_get(1)? };
                        Claimed::New { clock: Some(clock) }
                    }
                    None => Claimed::Taken,
                });
            }
            Ok(match insert.execute(conn).await?.rows_affected() {
                0 => Claimed::Taken,
                _ => Claimed::New { clock: None },
            })
        })
    }

    fn find<'c>(
        conn: &'c mut PgConnection,
        statements: &'c Statements,
        new: NewKey<'c>,
    ) -> BoxFuture<'c, sqlx::Result<Option<KeyRow>>> {
        Box::pin(async move {
            let row = if statements.persistent {
                sqlx::query(FIND).bind(new.handler).bind(new.event_key.as_bytes()).fetch_optional(conn).await?
            } else {
                sqlx::raw_sql(find_sql(new)).fetch_optional(conn).await?
            };
            row.as_ref().map(super::key_row).transpose()
        })
    }

    fn store_result<'c>(
        conn: &'c mut PgConnection,
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
                .map_err(not_stored)?;
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
        let Some(database) = error.as_database_error() else {
            return driver_fault(error);
        };
        match database.code().as_deref().unwrap_or_default() {
            "40001" | "40P01" => Fault::Contention,
            "55P03" => Fault::LockTimeout,
            "25006" => Fault::ReadOnly,
            "42P01" => Fault::Schema,
            // Shutdown, crash, idle too long; too many connections; wrong password, role or database.
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" | "28000" | "28P01" | "3D000" => {
                Fault::ConnectionLost
            }
            // Class 08 without the protocol violation, which a pooler that mixes up sessions causes.
            code if code.starts_with("08") && code != "08P01" => Fault::ConnectionLost,
            _ => Fault::Other,
        }
    }

    fn migrator() -> Migrator {
        schema::migrator(MIGRATIONS)
    }

    fn schema_version(conn: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<Option<i64>>> {
        Box::pin(async move {
            let exists: bool = sqlx::raw_sql(TABLE_EXISTS).fetch_one(&mut *conn).await?.try_get(0)?;
            if !exists {
                return Ok(None);
            }
            sqlx::raw_sql(SCHEMA_VERSION).fetch_one(conn).await?.try_get(0)
        })
    }

    fn health(conn: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<Health>> {
        Box::pin(async move {
            let row = sqlx::raw_sql(HEALTH).fetch_one(&mut *conn).await?;
            let rows = sqlx::raw_sql(INDEXES).fetch_all(conn).await?;
            let indexes = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            Ok(Health {
                version: row.try_get(0)?,
                now_micros: row.try_get(1)?,
                isolation: row.try_get(2)?,
                autovacuum: Some(row.try_get(3)?),
                indexes: indexes.collect::<sqlx::Result<_>>()?,
            })
        })
    }
}

impl InPlace for Postgres {
    fn commit_in_place(conn: &mut PgConnection) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(in_place::prove_and_commit::<Self>(conn, PROVE_AND_COMMIT, commit_error))
    }

    fn rollback_in_place(conn: &mut PgConnection) -> BoxFuture<'_, bool> {
        Box::pin(in_place::rollback::<Self>(conn))
    }
}

/// An error before the proof's own result is the proof's; one after it is the commit's.
fn commit_error(error: sqlx::Error, proven: bool) -> CommitError {
    let code = error.as_database_error().and_then(|database| database.code().map(std::borrow::Cow::into_owned));
    match code.as_deref() {
        _ if Postgres::fault(&error) == Fault::ConnectionLost => CommitError::Lost(error),
        None => CommitError::Lost(error),
        Some(_) if proven => CommitError::Refused(error),
        Some("25P02") => CommitError::Aborted(error),
        Some(_) => CommitError::Escaped(error),
    }
}

/// In a doomed transaction the result is only the first statement to be refused.
fn not_stored(error: sqlx::Error) -> CommitError {
    match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
        Some("25P02") => CommitError::Aborted(error),
        _ => CommitError::Refused(error),
    }
}
