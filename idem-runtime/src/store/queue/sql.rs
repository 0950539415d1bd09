//! One store's statements, and the calls that are the same on each of them.

#![allow(clippy::disallowed_types, reason = "what is put in is numbers")]

use sqlx::AssertSqlSafe;

use super::Held;

/// One store's statements. Their parameters stand in the order in which [`Queue`](super::Queue)'s methods name them, unless
/// said.
pub(super) struct Sql {
    pub(super) enqueue: &'static str,
    /// Holder, milliseconds, queue, limit.
    pub(super) take: &'static str,
    /// Holder; `None` where `take` returns the rows.
    pub(super) taken: Option<&'static str>,
    pub(super) remove: &'static str,
    /// Milliseconds, one where it counts, id, holder.
    pub(super) put_back: &'static str,
    /// Milliseconds, id, holder.
    pub(super) hide_for: &'static str,
    /// Reason, id, holder.
    pub(super) bury: &'static str,
    pub(super) unsettled: &'static str,
    pub(super) buried: &'static str,
    pub(super) exhume: &'static str,
}

/// The same calls on each driver, whose types no generic function could name without a page of bounds.
macro_rules! queue {
    ($store:ty, $connection:ty, $sql:expr) => {
        impl crate::store::Queue for $store {
            fn enqueue<'c>(
                conn: &'c mut $connection,
                queue: &'c str,
                headers: Option<&'c str>,
                body: &'c [u8],
                keep: bool,
            ) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.enqueue).bind(queue).bind(headers).bind(body);
                    query.persistent(keep).execute(conn).await.map(drop)
                })
            }

            fn take<'c>(
                conn: &'c mut $connection,
                queue: &'c str,
                holder: i64,
                lease_millis: i64,
                limit: i64,
                keep: bool,
            ) -> BoxFuture<'c, sqlx::Result<Vec<QueuedRow>>> {
                Box::pin(async move {
                    let take = sqlx::query($sql.take).bind(holder).bind(lease_millis).bind(queue).bind(limit);
                    let take = take.persistent(keep);
                    let rows = match $sql.taken {
                        None => take.fetch_all(conn).await?,
                        Some(_) if take.execute(&mut *conn).await?.rows_affected() == 0 => Vec::new(),
                        Some(taken) => sqlx::query(taken).bind(holder).persistent(keep).fetch_all(conn).await?,
                    };
                    let mut rows = queued_rows!(rows)?;
                    rows.sort_by_key(|row| row.id);
                    Ok(rows)
                })
            }

            fn remove(conn: &mut $connection, held: Held, keep: bool) -> BoxFuture<'_, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.remove).bind(held.id).bind(held.holder);
                    Ok(query.persistent(keep).execute(conn).await?.rows_affected() == 1)
                })
            }

            fn remove_all<'c>(conn: &'c mut $connection, held: &'c [Held]) -> BoxFuture<'c, sqlx::Result<Vec<i64>>> {
                Box::pin(async move {
                    let [remove, left] = remove_all(held);
                    let removed = sqlx::raw_sql(remove).execute(&mut *conn).await?.rows_affected();
                    if removed == held.len() as u64 {
                        return Ok(Vec::new());
                    }
                    let rows = sqlx::raw_sql(left).fetch_all(conn).await?;
                    rows.iter().map(|row| row.try_get(0)).collect()
                })
            }

            fn put_back(
                conn: &mut $connection,
                held: Held,
                after_millis: i64,
                counts: bool,
                keep: bool,
            ) -> BoxFuture<'_, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.put_back).bind(after_millis).bind(i64::from(!counts));
                    let query = query.bind(held.id).bind(held.holder).persistent(keep);
                    Ok(query.execute(conn).await?.rows_affected() == 1)
                })
            }

            fn hide_for(
                conn: &mut $connection,
                held: Held,
                millis: i64,
                keep: bool,
            ) -> BoxFuture<'_, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.hide_for).bind(millis).bind(held.id).bind(held.holder);
                    Ok(query.persistent(keep).execute(conn).await?.rows_affected() == 1)
                })
            }

            fn bury<'c>(
                conn: &'c mut $connection,
                held: Held,
                reason: &'c str,
                keep: bool,
            ) -> BoxFuture<'c, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.bury).bind(reason).bind(held.id).bind(held.holder);
                    Ok(query.persistent(keep).execute(conn).await?.rows_affected() == 1)
                })
            }

            fn unsettled<'c>(
                conn: &'c mut $connection,
                queue: &'c str,
                limit: i64,
            ) -> BoxFuture<'c, sqlx::Result<(i64, Option<i64>)>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.unsettled).bind(queue).bind(limit).persistent(false);
                    let row = query.fetch_one(conn).await?;
                    Ok((row.try_get(0)?, row.try_get(1)?))
                })
            }

            fn buried<'c>(
                conn: &'c mut $connection,
                queue: &'c str,
                limit: i64,
            ) -> BoxFuture<'c, sqlx::Result<Vec<QueuedRow>>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.buried).bind(queue).bind(limit).persistent(false);
                    queued_rows!(query.fetch_all(conn).await?)
                })
            }

            fn exhume<'c>(conn: &'c mut $connection, queue: &'c str, id: i64) -> BoxFuture<'c, sqlx::Result<bool>> {
                Box::pin(async move {
                    let query = sqlx::query($sql.exhume).bind(queue).bind(id).persistent(false);
                    Ok(query.execute(conn).await?.rows_affected() == 1)
                })
            }
        }
    };
}

/// Reads the columns that every look at a message has.
macro_rules! queued_rows {
    ($rows:expr) => {
        $rows
            .iter()
            .map(|row| {
                Ok(QueuedRow {
                    id: row.try_get(0)?,
                    attempts: row.try_get(1)?,
                    body: row.try_get(2)?,
                    headers: row.try_get(3)?,
                    dead_reason: row.try_get(4)?,
                    dead_millis_ago: row.try_get(5)?,
                })
            })
            .collect::<sqlx::Result<Vec<QueuedRow>>>()
    };
}

/// Deletes the messages, and asks which are still there. As text: a prepared statement would be another for each length.
pub(super) fn remove_all(held: &[Held]) -> [AssertSqlSafe<String>; 2] {
    let list =
        |number: fn(&Held) -> i64| held.iter().map(|held| number(held).to_string()).collect::<Vec<_>>().join(",");
    let (ids, holders) = (list(|held| held.id), list(|held| held.holder));
    [
        AssertSqlSafe(format!("DELETE FROM idem_queue WHERE id IN ({ids}) AND holder IN ({holders})")),
        AssertSqlSafe(format!("SELECT id FROM idem_queue WHERE id IN ({ids})")),
    ]
}

pub(super) use {queue, queued_rows};
