-- One row per event that a handler applied. docs/schema.md explains the columns.
-- Binary collations: `Order-A` and `order-a` are two events.
CREATE TABLE idem_key (
    handler     VARCHAR(128)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    event_key   VARBINARY(128) NOT NULL,
    claimed_at  DATETIME(6)    NOT NULL,
    claim       BIGINT         NOT NULL,
    fingerprint BINARY(32),
    result      LONGBLOB,
    PRIMARY KEY (handler, event_key),
    -- For the purge: the oldest keys of one handler.
    KEY idem_key_age (handler, claimed_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
