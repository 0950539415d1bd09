//! SQLite.

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Row, Sqlite};

use super::sql::{Sql, queue, queued_rows, remove_all};
use super::{Held, QueuedRow};

/// Milliseconds since 1970, as in `../sqlite.rs`.
macro_rules! now {
    () => {
        "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
    };
}

const SQL: Sql = Sql {
    enqueue: concat!(
        "INSERT INTO idem_queue (queue, headers, body, enqueued_at, visible_at) VALUES (?1, ?2, ?3, ",
        now!(),
        ", ",
        now!(),
        ")",
    ),
    take: concat!(
        "UPDATE idem_queue SET attempts = attempts + 1, holder = ?1, visible_at = ",
        now!(),
        " + ?2 WHERE id IN (SELECT id FROM idem_queue WHERE queue = ?3 AND dead_at IS NULL AND visible_at <= ",
        now!(),
        " ORDER BY visible_at, id LIMIT ?4) RETURNING id, attempts, body, headers, dead_reason, NULL",
    ),
    taken: None,
    remove: "DELETE FROM idem_queue WHERE id = ?1 AND holder = ?2",
    put_back: concat!(
        "UPDATE idem_queue SET holder = NULL, visible_at = ",
        now!(),
        " + ?1, attempts = attempts - ?2 WHERE id = ?3 AND holder = ?4",
    ),
    hide_for: concat!("UPDATE idem_queue SET visible_at = ", now!(), " + ?1 WHERE id = ?2 AND holder = ?3"),
    bury: concat!(
        "UPDATE idem_queue SET holder = NULL, dead_at = ",
        now!(),
        ", dead_reason = ?1 WHERE id = ?2 AND holder = ?3",
    ),
    unsettled: concat!(
        "SELECT count(*), ",
        now!(),
        " - min(enqueued_at) FROM (SELECT enqueued_at FROM idem_queue WHERE queue = ?1 AND dead_at IS NULL LIMIT ?2)",
    ),
    buried: concat!(
        "SELECT id, attempts, body, headers, dead_reason, ",
        now!(),
        " - dead_at FROM idem_queue WHERE queue = ?1 AND dead_at IS NOT NULL ORDER BY id LIMIT ?2",
    ),
    exhume: concat!(
        "UPDATE idem_queue SET dead_at = NULL, dead_reason = NULL, attempts = 0, visible_at = ",
        now!(),
        " WHERE queue = ?1 AND id = ?2 AND dead_at IS NOT NULL",
    ),
};

queue!(Sqlite, SqliteConnection, SQL);
