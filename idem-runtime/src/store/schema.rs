//! The library's own tables: applying the migrations, and checking at start that they were applied.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Pool, SqlSafeStr};

use super::{Fault, Store};
use crate::error::{Error, ErrorKind};

/// The version table. Not sqlx's default, so that a host application's migrations stay its own.
pub(crate) const VERSION_TABLE: &str = "idem_schema";

/// Puts a store's migrations together. Numbered from 1, append-only.
pub(super) fn migrator(migrations: &[(&'static str, &'static str)]) -> Migrator {
    let migrations = (1..).zip(migrations).map(|(version, (name, sql))| {
        Migration::new(version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.dangerous_set_table_name(VERSION_TABLE);
    migrator
}

/// Creates the library's tables, or brings them up to this version of the library. Does nothing when they are.
///
/// The tables are `idem_key` and, for the version, `idem_schema`; a host application's own migrations are left alone.
/// Nodes that start together may all call it: the database lets one of them in at a time.
///
/// # Errors
///
/// [`ErrorKind::Schema`] when a migration fails or the tables are newer than this library;
/// [`ErrorKind::Unavailable`] without a connection.
///
/// # Cancel safety
///
/// Not cancel safe: a migration that is cut off may have to be finished by hand on MySQL, where DDL is not
/// transactional.
///
/// # Example
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// idem_runtime::migrate(&pool).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub async fn migrate<S: Store>(pool: &Pool<S>) -> Result<(), Error> {
    let mut conn = pool.acquire().await.map_err(|error| connection_error::<S>(error))?;
    S::lock_migrations(&mut conn, true).await.map_err(|error| connection_error::<S>(error))?;
    let applied = apply::<S>(&mut conn).await;
    if applied.is_err() || S::lock_migrations(&mut conn, false).await.is_err() {
        // It may still hold the migration lock.
        conn.close_on_drop();
    }
    applied.map_err(|error| Error::new(ErrorKind::Schema).detail("a migration failed").source(error))
}

async fn apply<S: Store>(conn: &mut S::Connection) -> Result<(), MigrateError> {
    let migrator = S::migrator();
    let mut reached = S::schema_version(conn).await?;
    loop {
        // `run` wants an `Acquire` for every lifetime, which no connection has behind an `async fn`.
        let Err(error) = migrator.run_direct(None, conn, false).await else {
            return Ok(());
        };
        // On SQLite there is no lock to wait at: another node may have come first, and failing is how one notices.
        let now = S::schema_version(conn).await?;
        if now <= reached {
            return Err(error);
        }
        reached = now;
    }
}

/// The version of the tables that this library needs.
pub(crate) fn wanted<S: Store>() -> i64 {
    S::migrator().iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The version of the tables that are there; `None` without any.
pub(crate) async fn found<S: Store>(conn: &mut S::Connection) -> Result<Option<i64>, Error> {
    S::schema_version(conn).await.map_err(|error| connection_error::<S>(error))
}

/// Refuses tables that are missing, older or newer than this library.
pub(crate) async fn check<S: Store>(conn: &mut S::Connection) -> Result<(), Error> {
    let wanted = wanted::<S>();
    let detail = match found::<S>(conn).await? {
        None => format!("they are missing, and version {wanted} is needed"),
        Some(found) if found < wanted => format!("they have version {found}, and version {wanted} is needed"),
        Some(found) if found > wanted => format!(
            "they have version {found}, and this library knows only version {wanted}; a newer release migrated them, so \
             deploy that release here too (running `migrate` with this one does not help)"
        ),
        Some(_) => return Ok(()),
    };
    Err(Error::new(ErrorKind::Schema).detail(detail))
}

pub(crate) fn connection_error<S: Store>(error: sqlx::Error) -> Error {
    let kind = match S::fault(&error) {
        Fault::ReadOnly => ErrorKind::ReadOnly,
        Fault::Schema => ErrorKind::Schema,
        Fault::Other => ErrorKind::Database,
        Fault::Contention | Fault::LockTimeout | Fault::ConnectionLost => ErrorKind::Unavailable,
    };
    Error::new(kind).source(error)
}
