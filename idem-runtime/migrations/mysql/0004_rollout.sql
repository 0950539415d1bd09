-- What keeps a rolling deploy, and a start after a long stop, from deleting keys too early. docs/schema.md explains it.
ALTER TABLE idem_handler
    ADD COLUMN semantics              VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'idempotent',
    ADD COLUMN longest_retention_secs BIGINT,
    ADD COLUMN longest_seen_at        DATETIME(6);

ALTER TABLE idem_lease ADD COLUMN seen_at DATETIME(6);
