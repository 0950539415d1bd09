-- Keys that somebody forgot on purpose, and who said so. docs/schema.md explains the columns.
CREATE TABLE idem_forgotten (
    handler      TEXT    NOT NULL,
    key_digest   BLOB    NOT NULL, -- SHA-256 of event_key
    claimed_at   INTEGER NOT NULL, -- milliseconds since 1970, UTC
    forgotten_at INTEGER NOT NULL,
    author       TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    PRIMARY KEY (handler, key_digest, forgotten_at)
) STRICT, WITHOUT ROWID;
