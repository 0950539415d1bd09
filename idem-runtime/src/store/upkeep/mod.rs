//! What the purge asks of a database: its SQL, and one implementation for all stores.
//!
//! None of it is on the way of a delivery. Every time is the database's own, and comes out as a number of seconds from
//! its now, so that no two clocks are ever compared.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use futures_util::future::BoxFuture;
use sqlx::Database;

/// A handler as a node recorded it at its start.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct RecordedRow {
    pub application: String,
    pub handler: String,
    pub key_text: String,
    pub retention_secs: Option<i64>,
    /// How long ago a node with the handler started.
    pub seen_secs_ago: i64,
    pub highest_duplicate_age_secs: i64,
}

impl RecordedRow {
    /// Whether the handler, which is not in this program, is not in any other of its application's either: nodes say once an
    /// hour that they have it.
    pub(crate) fn is_orphan(&self) -> bool {
        const A_DAY: i64 = 86_400;
        self.retention_secs.is_some() && self.seen_secs_ago > A_DAY
    }
}

/// What a node records of a handler.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct RecordedHandler<'a> {
    pub application: &'a str,
    pub handler: &'a str,
    pub key_text: &'a str,
    pub retention_secs: Option<i64>,
}

/// A time in which nothing may be purged, that is neither over nor released.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct HoldRow {
    pub id: String,
    pub reason: String,
    pub author: String,
    pub expires_in_secs: i64,
}

/// A key that somebody forgets on purpose.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct ForgetKey<'a> {
    pub handler: &'a str,
    pub event_key: &'a str,
    /// The SHA-256 of the key.
    pub digest: &'a [u8],
    pub author: &'a str,
    pub reason: &'a str,
}

/// A key that somebody has forgotten on purpose.
#[derive(Debug, Clone)]
#[doc(hidden)] // Not public API: the seam between purge and store.
pub struct ForgottenRow {
    pub author: String,
    pub reason: String,
    pub secs_ago: i64,
}

/// The housekeeping of a store.
#[doc(hidden)] // Not public API: the seam between purge and store.
pub trait Upkeep: Database {
    /// Writes down what the code declares of a handler.
    fn record<'c>(conn: &'c mut Self::Connection, handler: RecordedHandler<'c>) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Everything that was recorded, by any application.
    fn recorded(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<Vec<RecordedRow>>>;

    /// Raises the highest age at which a duplicate of the handler's came.
    fn raise_duplicate_age<'c>(
        conn: &'c mut Self::Connection,
        application: &'c str,
        handler: &'c str,
        secs: i64,
    ) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Deletes the oldest keys of a handler that are older than so many seconds, at most `limit` of them, in a transaction
    /// of its own. Says how many.
    fn delete_older<'c>(
        conn: &'c mut Self::Connection,
        handler: &'c str,
        secs: i64,
        limit: i64,
    ) -> BoxFuture<'c, sqlx::Result<u64>>;

    /// How many keys of a handler are older than so many seconds.
    fn count_older<'c>(conn: &'c mut Self::Connection, handler: &'c str, secs: i64)
    -> BoxFuture<'c, sqlx::Result<i64>>;

    /// The age of a handler's oldest key in seconds; `None` without keys.
    fn oldest_secs<'c>(conn: &'c mut Self::Connection, handler: &'c str) -> BoxFuture<'c, sqlx::Result<Option<i64>>>;

    /// Takes or renews the right to purge for so many seconds. Says whether it is the caller's.
    fn take_lease<'c>(conn: &'c mut Self::Connection, holder: &'c str, secs: i64) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// Gives the right to purge back, after a pass that was made.
    fn end_lease<'c>(conn: &'c mut Self::Connection, holder: &'c str) -> BoxFuture<'c, sqlx::Result<()>>;

    /// How long the purge has been waiting since a start, in seconds. The first call after a pass begins the wait.
    fn waiting_secs(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<i64>>;

    /// The holds that are in force.
    fn holds(conn: &mut Self::Connection) -> BoxFuture<'_, sqlx::Result<Vec<HoldRow>>>;

    /// Places a hold for so many seconds.
    fn place_hold<'c>(
        conn: &'c mut Self::Connection,
        id: &'c str,
        reason: &'c str,
        author: &'c str,
        secs: i64,
    ) -> BoxFuture<'c, sqlx::Result<()>>;

    /// Ends a hold early. Says whether it was in force.
    fn release_hold<'c>(
        conn: &'c mut Self::Connection,
        id: &'c str,
        author: &'c str,
    ) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// Deletes a key and writes down who did it, in one transaction. Says whether it was there.
    fn forget<'c>(conn: &'c mut Self::Connection, key: ForgetKey<'c>) -> BoxFuture<'c, sqlx::Result<bool>>;

    /// When a key was forgotten, and by whom, the last time first.
    fn forgotten<'c>(
        conn: &'c mut Self::Connection,
        handler: &'c str,
        digest: &'c [u8],
    ) -> BoxFuture<'c, sqlx::Result<Vec<ForgottenRow>>>;
}

/// One store's statements. Their parameters stand in the order in which [`Upkeep`]'s methods name them, unless said.
pub(super) struct Sql {
    /// Whether statements are kept under a name. Not where a pooler could hand the next one to another session; elsewhere
    /// the preparation of each one costs a delayed acknowledgement, 40 milliseconds.
    pub(super) persistent: bool,
    /// Application, handler, key text, retention.
    pub(super) record: &'static str,
    pub(super) recorded: &'static str,
    /// Seconds, application, handler, seconds.
    pub(super) raise_duplicate_age: &'static str,
    /// Run before the deletion, outside a transaction.
    pub(super) before_delete: Option<&'static str>,
    pub(super) delete_older: &'static str,
    pub(super) count_older: &'static str,
    pub(super) oldest_secs: &'static str,
    /// Holder, seconds, holder.
    pub(super) take_lease: &'static str,
    pub(super) end_lease: &'static str,
    pub(super) begin_wait: &'static str,
    pub(super) waiting_secs: &'static str,
    pub(super) holds: &'static str,
    pub(super) place_hold: &'static str,
    /// Author, id.
    pub(super) release_hold: &'static str,
    /// Digest, author, reason, handler, key.
    pub(super) write_down_forgotten: &'static str,
    pub(super) forget: &'static str,
    pub(super) forgotten: &'static str,
}

/// The same calls on each driver, whose types no generic function could name without a page of bounds.
macro_rules! upkeep {
    ($store:ty, $connection:ty, $sql:expr) => {
        impl crate::store::Upkeep for $store {
            fn record<'c>(conn: &'c mut $connection, handler: RecordedHandler<'c>) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.record).bind(handler.application).bind(handler.handler);
                    query
                        .bind(handler.key_text)
                        .bind(handler.retention_secs)
                        .persistent($sql.persistent)
                        .execute(conn)
                        .await
                        .map(drop)
                })
            }

            fn recorded(conn: &mut $connection) -> BoxFuture<'_, sqlx::Result<Vec<RecordedRow>>> {
                Box::pin(async move {
                    let rows = sqlx::query($sql.recorded).persistent($sql.persistent).fetch_all(conn).await?;
                    let row = |row: &<$store as sqlx::Database>::Row| {
                        Ok(RecordedRow {
                            application: row.try_get(0)?,
                            handler: row.try_get(1)?,
                            key_text: row.try_get(2)?,
                            retention_secs: row.try_get(3)?,
                            seen_secs_ago: row.try_get(4)?,
                            highest_duplicate_age_secs: row.try_get(5)?,
                        })
                    };
                    rows.iter().map(row).collect()
                })
            }

            fn raise_duplicate_age<'c>(
                conn: &'c mut $connection,
                application: &'c str,
                handler: &'c str,
                secs: i64,
            ) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.raise_duplicate_age).bind(secs).bind(application).bind(handler);
                    query.bind(secs).persistent($sql.persistent).execute(conn).await.map(drop)
                })
            }

            fn delete_older<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
                secs: i64,
                limit: i64,
            ) -> BoxFuture<'c, sqlx::Result<u64>> {
                Box::pin(async move {
                    if let Some(before) = $sql.before_delete {
                        sqlx::raw_sql(before).execute(&mut *conn).await?;
                    }
                    let query = sqlx::query($sql.delete_older).bind(handler).bind(secs).bind(limit);
                    Ok(query.persistent($sql.persistent).execute(conn).await?.rows_affected())
                })
            }

            fn count_older<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
                secs: i64,
            ) -> BoxFuture<'c, sqlx::Result<i64>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.count_older).bind(handler).bind(secs);
                    query.persistent($sql.persistent).fetch_one(conn).await?.try_get(0)
                })
            }

            fn oldest_secs<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
            ) -> BoxFuture<'c, sqlx::Result<Option<i64>>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.oldest_secs).bind(handler);
                    query.persistent($sql.persistent).fetch_one(conn).await?.try_get(0)
                })
            }

            fn take_lease<'c>(
                conn: &'c mut $connection,
                holder: &'c str,
                secs: i64,
            ) -> BoxFuture<'c, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.take_lease).bind(holder).bind(secs).bind(holder);
                    Ok(query.persistent($sql.persistent).execute(conn).await?.rows_affected() == 1)
                })
            }

            fn end_lease<'c>(conn: &'c mut $connection, holder: &'c str) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    sqlx::query($sql.end_lease).bind(holder).persistent($sql.persistent).execute(conn).await.map(drop)
                })
            }

            fn waiting_secs(conn: &mut $connection) -> BoxFuture<'_, sqlx::Result<i64>> {
                Box::pin(async move {
                    sqlx::query($sql.begin_wait).persistent($sql.persistent).execute(&mut *conn).await?;
                    sqlx::query($sql.waiting_secs).persistent($sql.persistent).fetch_one(conn).await?.try_get(0)
                })
            }

            fn holds(conn: &mut $connection) -> BoxFuture<'_, sqlx::Result<Vec<HoldRow>>> {
                Box::pin(async move {
                    let rows = sqlx::query($sql.holds).persistent($sql.persistent).fetch_all(conn).await?;
                    let row = |row: &<$store as sqlx::Database>::Row| {
                        Ok(HoldRow {
                            id: row.try_get(0)?,
                            reason: row.try_get(1)?,
                            author: row.try_get(2)?,
                            expires_in_secs: row.try_get(3)?,
                        })
                    };
                    rows.iter().map(row).collect()
                })
            }

            fn place_hold<'c>(
                conn: &'c mut $connection,
                id: &'c str,
                reason: &'c str,
                author: &'c str,
                secs: i64,
            ) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.place_hold).bind(id).bind(reason).bind(author).bind(secs);
                    query.persistent($sql.persistent).execute(conn).await.map(drop)
                })
            }

            fn release_hold<'c>(
                conn: &'c mut $connection,
                id: &'c str,
                author: &'c str,
            ) -> BoxFuture<'c, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.release_hold).bind(author).bind(id);
                    Ok(query.persistent($sql.persistent).execute(conn).await?.rows_affected() == 1)
                })
            }

            fn forget<'c>(conn: &'c mut $connection, key: ForgetKey<'c>) -> BoxFuture<'c, sqlx::Result<bool>> {
                Box::pin(async move {
                    let mut tx = sqlx::Connection::begin(conn).await?;
                    let event_key = key.event_key.as_bytes();
                    let write = sqlx::query($sql.write_down_forgotten).bind(key.digest).bind(key.author);
                    let write = write.bind(key.reason).bind(key.handler).bind(event_key).persistent($sql.persistent);
                    let written = write.execute(&mut *tx).await?.rows_affected();
                    let delete = sqlx::query($sql.forget).bind(key.handler).bind(event_key).persistent($sql.persistent);
                    let deleted = delete.execute(&mut *tx).await?.rows_affected();
                    // The purge may have come in between.
                    let is_done = written == 1 && deleted == 1;
                    if is_done {
                        tx.commit().await?
                    } else {
                        tx.rollback().await?
                    }
                    Ok(is_done)
                })
            }

            fn forgotten<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
                digest: &'c [u8],
            ) -> BoxFuture<'c, sqlx::Result<Vec<ForgottenRow>>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.forgotten).bind(handler).bind(digest);
                    let rows = query.persistent($sql.persistent).fetch_all(conn).await?;
                    let row = |row: &<$store as sqlx::Database>::Row| {
                        let (author, reason) = (row.try_get(0)?, row.try_get(1)?);
                        Ok(ForgottenRow { author, reason, secs_ago: row.try_get(2)? })
                    };
                    rows.iter().map(row).collect()
                })
            }
        }
    };
}
use upkeep;
