-- Messages that wait to be consumed, where the database is the broker. docs/schema.md explains the columns.
CREATE TABLE idem_queue (
    id          BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue       VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    headers     MEDIUMTEXT   CHARACTER SET utf8mb4,
    body        LONGBLOB     NOT NULL,
    attempts    INT          NOT NULL DEFAULT 0,
    holder      BIGINT,
    enqueued_at DATETIME(6)  NOT NULL,
    visible_at  DATETIME(6)  NOT NULL,
    dead_at     DATETIME(6),
    dead_reason TEXT         CHARACTER SET utf8mb4,
    KEY idem_queue_next (queue, dead_at, visible_at, id),
    KEY idem_queue_holder (holder)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
