//! One store's statements, and the calls that are the same on each of them.

use super::Lengths;

/// One store's statements. Their parameters stand in the order in which [`Upkeep`]'s methods name them, unless said.
pub(super) struct Sql {
    /// Whether statements are kept under a name. Not where a pooler could hand the next one to another session; elsewhere
    /// the preparation of each one costs a delayed acknowledgement, 40 milliseconds.
    pub(super) persistent: bool,
    /// Application, handler, key text, retention, semantics.
    pub(super) record: &'static str,
    pub(super) recorded: &'static str,
    /// Seconds, application, handler, seconds, grace.
    pub(super) settle_retention: &'static str,
    /// Seconds, application, handler, seconds.
    pub(super) raise_duplicate_age: &'static str,
    /// Opens the transaction of a batch: what it waits for is bounded, and its isolation locks no gaps.
    pub(super) begin_batch: &'static str,
    pub(super) delete_older: &'static str,
    pub(super) count_older: &'static str,
    pub(super) oldest_secs: &'static str,
    /// Holder, seconds, holder.
    pub(super) take_lease: &'static str,
    pub(super) end_lease: &'static str,
    pub(super) release_lease: &'static str,
    /// Gap.
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
    pub(super) count: &'static str,
    pub(super) count_younger: &'static str,
    pub(super) lengths: &'static str,
    pub(super) row_bytes: fn(Lengths) -> i64,
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
                        .bind(handler.semantics)
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
                            longest_retention_secs: row.try_get(6)?,
                            longest_seen_secs_ago: row.try_get(7)?,
                        })
                    };
                    rows.iter().map(row).collect()
                })
            }

            fn settle_retention<'c>(
                conn: &'c mut $connection,
                application: &'c str,
                handler: &'c str,
                secs: i64,
                grace: i64,
            ) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.settle_retention).bind(secs).bind(application).bind(handler);
                    query.bind(secs).bind(grace).persistent($sql.persistent).execute(conn).await.map(drop)
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
                    let mut tx = conn.begin_with($sql.begin_batch).await?;
                    let query = sqlx::query($sql.delete_older).bind(handler).bind(secs).bind(limit);
                    let deleted = query.persistent($sql.persistent).execute(&mut *tx).await?.rows_affected();
                    tx.commit().await?;
                    Ok(deleted)
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

            fn release_lease<'c>(conn: &'c mut $connection, holder: &'c str) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.release_lease).bind(holder);
                    query.persistent($sql.persistent).execute(conn).await.map(drop)
                })
            }

            fn waiting_secs(conn: &mut $connection, gap: i64) -> BoxFuture<'_, sqlx::Result<i64>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.begin_wait).bind(gap);
                    query.persistent($sql.persistent).execute(&mut *conn).await?;
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

            fn count<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
                limit: i64,
            ) -> BoxFuture<'c, sqlx::Result<Counted>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.count).bind(handler).bind(limit);
                    counted!(query.persistent($sql.persistent).fetch_one(conn).await?)
                })
            }

            fn count_younger<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
                secs: i64,
                limit: i64,
            ) -> BoxFuture<'c, sqlx::Result<Counted>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.count_younger).bind(handler).bind(secs).bind(limit);
                    counted!(query.persistent($sql.persistent).fetch_one(conn).await?)
                })
            }

            fn lengths<'c>(
                conn: &'c mut $connection,
                handler: &'c str,
            ) -> BoxFuture<'c, sqlx::Result<Option<Lengths>>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.lengths).bind(handler);
                    let row = query.persistent($sql.persistent).fetch_one(conn).await?;
                    let (event_key, rest): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
                    let handler = i64::try_from(handler.len()).unwrap_or(0);
                    Ok(event_key.zip(rest).map(|(event_key, rest)| Lengths { handler, event_key, rest }))
                })
            }

            fn row_bytes(lengths: Lengths) -> i64 {
                ($sql.row_bytes)(lengths)
            }
        }
    };
}

/// Reads the columns of the counts.
macro_rules! counted {
    ($row:expr) => {{
        let row = $row;
        Ok(Counted { keys: row.try_get(0)?, oldest_secs: row.try_get(1)?, youngest_secs: row.try_get(2)? })
    }};
}

pub(super) use {counted, upkeep};
