-- One row per event that a handler applied. docs/schema.md explains the columns.
CREATE TABLE idem_key (
    handler     TEXT    NOT NULL,
    event_key   BLOB    NOT NULL,
    claimed_at  INTEGER NOT NULL, -- milliseconds since 1970, UTC
    claim       INTEGER NOT NULL,
    fingerprint BLOB,
    result      BLOB,
    PRIMARY KEY (handler, event_key)
) STRICT, WITHOUT ROWID;

-- For the purge: the oldest keys of one handler.
CREATE INDEX idem_key_age ON idem_key (handler, claimed_at);
