-- What the purge knows beside the keys. docs/schema.md explains the columns.

-- The handlers of each application, as the code that started last declared them.
CREATE TABLE idem_handler (
    application                VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    handler                    VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    key_text                   TEXT         CHARACTER SET utf8mb4 NOT NULL,
    retention_secs             BIGINT,
    first_seen_at              DATETIME(6)  NOT NULL,
    last_seen_at               DATETIME(6)  NOT NULL,
    highest_duplicate_age_secs BIGINT       NOT NULL DEFAULT 0,
    PRIMARY KEY (application, handler)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Which node purges, and what outlives the node.
CREATE TABLE idem_lease (
    name         VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    holder       VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    until_at     DATETIME(6)  NOT NULL,
    held_since   DATETIME(6),
    last_pass_at DATETIME(6)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
INSERT INTO idem_lease (name, holder, until_at) VALUES ('purge', '', UTC_TIMESTAMP(6));

-- Times in which nothing may be purged, and who said so.
CREATE TABLE idem_hold (
    id          VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    reason      TEXT         CHARACTER SET utf8mb4 NOT NULL,
    author      TEXT         CHARACTER SET utf8mb4 NOT NULL,
    placed_at   DATETIME(6)  NOT NULL,
    expires_at  DATETIME(6)  NOT NULL,
    released_at DATETIME(6),
    released_by TEXT         CHARACTER SET utf8mb4
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
