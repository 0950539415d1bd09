//! PostgreSQL.

use futures_util::future::BoxFuture;
use sqlx::postgres::PgConnection;
use sqlx::{Postgres, Row};

use super::sql::{Sql, queue, queued_rows, remove_all};
use super::{Held, QueuedRow};

const SQL: Sql = Sql {
    enqueue: "INSERT INTO idem_queue (queue, headers, body) VALUES ($1, $2, $3)",
    // Whoever waited for another's taking sees in the outer condition that it came too late.
    take: "\
        UPDATE idem_queue SET attempts = attempts + 1, holder = $1, \
               visible_at = now() + $2::bigint * interval '1 millisecond' \
        WHERE id = ANY (ARRAY( \
                  SELECT id FROM idem_queue WHERE queue = $3 AND dead_at IS NULL AND visible_at <= now() \
                  ORDER BY visible_at, id LIMIT $4 FOR UPDATE SKIP LOCKED)) \
              AND dead_at IS NULL AND visible_at <= now() \
        RETURNING id, attempts::bigint, body, headers, dead_reason, NULL::bigint",
    taken: None,
    remove: "DELETE FROM idem_queue WHERE id = $1 AND holder = $2",
    put_back: "\
        UPDATE idem_queue SET holder = NULL, visible_at = now() + $1::bigint * interval '1 millisecond', \
               attempts = attempts - $2::bigint \
        WHERE id = $3 AND holder = $4",
    hide_for: "\
        UPDATE idem_queue SET visible_at = now() + $1::bigint * interval '1 millisecond' WHERE id = $2 AND holder = $3",
    bury: "\
        UPDATE idem_queue SET holder = NULL, dead_at = now(), dead_reason = $1 WHERE id = $2 AND holder = $3",
    unsettled: "\
        SELECT count(*), (date_part('epoch', now() - min(enqueued_at)) * 1000)::bigint \
        FROM (SELECT enqueued_at FROM idem_queue WHERE queue = $1 AND dead_at IS NULL LIMIT $2) AS counted",
    buried: "\
        SELECT id, attempts::bigint, body, headers, dead_reason, \
               (date_part('epoch', now() - dead_at) * 1000)::bigint \
        FROM idem_queue WHERE queue = $1 AND dead_at IS NOT NULL ORDER BY id LIMIT $2",
    exhume: "\
        UPDATE idem_queue SET dead_at = NULL, dead_reason = NULL, attempts = 0, visible_at = now() \
        WHERE queue = $1 AND id = $2 AND dead_at IS NOT NULL",
};

queue!(Postgres, PgConnection, SQL);
