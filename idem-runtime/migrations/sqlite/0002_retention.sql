-- What the purge knows beside the keys. docs/schema.md explains the columns. Times are milliseconds since 1970, UTC.

-- The handlers of each application, as the code that started last declared them.
CREATE TABLE idem_handler (
    application                TEXT    NOT NULL,
    handler                    TEXT    NOT NULL,
    key_text                   TEXT    NOT NULL,
    retention_secs             INTEGER,
    first_seen_at              INTEGER NOT NULL,
    last_seen_at               INTEGER NOT NULL,
    highest_duplicate_age_secs INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (application, handler)
) STRICT, WITHOUT ROWID;

-- Which node purges, and what outlives the node.
CREATE TABLE idem_lease (
    name         TEXT    NOT NULL PRIMARY KEY,
    holder       TEXT    NOT NULL,
    until_at     INTEGER NOT NULL,
    held_since   INTEGER,
    last_pass_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO idem_lease (name, holder, until_at) VALUES ('purge', '', 0);

-- Times in which nothing may be purged, and who said so.
CREATE TABLE idem_hold (
    id          TEXT    NOT NULL PRIMARY KEY,
    reason      TEXT    NOT NULL,
    author      TEXT    NOT NULL,
    placed_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    released_at INTEGER,
    released_by TEXT
) STRICT, WITHOUT ROWID;
