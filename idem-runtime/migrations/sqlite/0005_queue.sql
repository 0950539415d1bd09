-- Messages that wait to be consumed, where the database is the broker. docs/schema.md explains the columns. Times are
-- milliseconds since 1970, UTC.
CREATE TABLE idem_queue (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    queue       TEXT    NOT NULL,
    headers     TEXT,
    body        BLOB    NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    holder      INTEGER,
    enqueued_at INTEGER NOT NULL,
    visible_at  INTEGER NOT NULL,
    dead_at     INTEGER,
    dead_reason TEXT
) STRICT;

-- The next ones of a queue.
CREATE INDEX idem_queue_next ON idem_queue (queue, visible_at, id) WHERE dead_at IS NULL;
-- Those that wait for a human.
CREATE INDEX idem_queue_dead ON idem_queue (queue, id) WHERE dead_at IS NOT NULL;
