-- Keys that somebody forgot on purpose, and who said so. docs/schema.md explains the columns.
CREATE TABLE idem_forgotten (
    handler      VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    key_digest   BINARY(32)   NOT NULL, -- SHA-256 of event_key
    claimed_at   DATETIME(6)  NOT NULL,
    forgotten_at DATETIME(6)  NOT NULL,
    author       TEXT         CHARACTER SET utf8mb4 NOT NULL,
    reason       TEXT         CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (handler, key_digest, forgotten_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
