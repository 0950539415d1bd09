-- One row per event that a handler applied. docs/schema.md explains the columns.
CREATE TABLE idem_key (
    handler     text        COLLATE "C" NOT NULL,
    event_key   bytea       NOT NULL,
    claimed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    claim       bigint      NOT NULL,
    fingerprint bytea,
    result      bytea,
    PRIMARY KEY (handler, event_key)
);

-- For the purge: the oldest keys of one handler.
CREATE INDEX idem_key_age ON idem_key (handler, claimed_at);
