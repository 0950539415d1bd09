//! MySQL and MariaDB.

use futures_util::future::BoxFuture;
use sqlx::mysql::MySqlConnection;
use sqlx::{MySql, Row};

use super::sql::{Sql, queue, queued_rows, remove_all};
use super::{Held, QueuedRow};

const SQL: Sql = Sql {
    enqueue: "\
        INSERT INTO idem_queue (queue, headers, body, enqueued_at, visible_at) \
        VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
    // Neither `RETURNING` nor `SKIP LOCKED`: each of them is missing on one of the servers.
    take: "\
        UPDATE idem_queue SET attempts = attempts + 1, holder = ?, \
               visible_at = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND \
        WHERE queue = ? AND dead_at IS NULL AND visible_at <= UTC_TIMESTAMP(6) ORDER BY visible_at, id LIMIT ?",
    taken: Some(
        "SELECT id, CAST(attempts AS SIGNED), body, headers, dead_reason, CAST(NULL AS SIGNED) \
         FROM idem_queue WHERE holder = ?",
    ),
    remove: "DELETE FROM idem_queue WHERE id = ? AND holder = ?",
    put_back: "\
        UPDATE idem_queue SET holder = NULL, visible_at = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, \
               attempts = attempts - ? \
        WHERE id = ? AND holder = ?",
    hide_for: "\
        UPDATE idem_queue SET visible_at = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND WHERE id = ? AND holder = ?",
    bury: "\
        UPDATE idem_queue SET holder = NULL, dead_at = UTC_TIMESTAMP(6), dead_reason = ? WHERE id = ? AND holder = ?",
    unsettled: "\
        SELECT COUNT(*), TIMESTAMPDIFF(MICROSECOND, MIN(enqueued_at), UTC_TIMESTAMP(6)) DIV 1000 \
        FROM (SELECT enqueued_at FROM idem_queue WHERE queue = ? AND dead_at IS NULL LIMIT ?) AS counted",
    buried: "\
        SELECT id, CAST(attempts AS SIGNED), body, headers, dead_reason, \
               TIMESTAMPDIFF(MICROSECOND, dead_at, UTC_TIMESTAMP(6)) DIV 1000 \
        FROM idem_queue WHERE queue = ? AND dead_at IS NOT NULL ORDER BY id LIMIT ?",
    exhume: "\
        UPDATE idem_queue SET dead_at = NULL, dead_reason = NULL, attempts = 0, visible_at = UTC_TIMESTAMP(6) \
        WHERE queue = ? AND id = ? AND dead_at IS NOT NULL",
};

queue!(MySql, MySqlConnection, SQL);
