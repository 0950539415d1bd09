-- What keeps a rolling deploy, and a start after a long stop, from deleting keys too early. docs/schema.md explains it.
ALTER TABLE idem_handler ADD COLUMN semantics TEXT NOT NULL DEFAULT 'idempotent';
ALTER TABLE idem_handler ADD COLUMN longest_retention_secs INTEGER;
ALTER TABLE idem_handler ADD COLUMN longest_seen_at INTEGER; -- milliseconds since 1970, UTC

ALTER TABLE idem_lease ADD COLUMN seen_at INTEGER; -- milliseconds since 1970, UTC
