-- Keys that somebody forgot on purpose, and who said so. docs/schema.md explains the columns.
CREATE TABLE idem_forgotten (
    handler      text        COLLATE "C" NOT NULL,
    key_digest   bytea       NOT NULL, -- SHA-256 of event_key
    claimed_at   timestamptz NOT NULL,
    forgotten_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    author       text        NOT NULL,
    reason       text        NOT NULL,
    PRIMARY KEY (handler, key_digest, forgotten_at)
);
