-- What keeps a rolling deploy, and a start after a long stop, from deleting keys too early. docs/schema.md explains it.
ALTER TABLE idem_handler
    ADD COLUMN semantics              text NOT NULL DEFAULT 'idempotent',
    ADD COLUMN longest_retention_secs bigint,
    ADD COLUMN longest_seen_at        timestamptz;

ALTER TABLE idem_lease ADD COLUMN seen_at timestamptz;
