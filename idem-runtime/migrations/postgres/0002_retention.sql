-- What the purge knows beside the keys. docs/schema.md explains the columns.

-- The handlers of each application, as the code that started last declared them.
CREATE TABLE idem_handler (
    application                text        COLLATE "C" NOT NULL,
    handler                    text        COLLATE "C" NOT NULL,
    key_text                   text        NOT NULL,
    retention_secs             bigint,
    first_seen_at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    highest_duplicate_age_secs bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (application, handler)
);

-- Which node purges, and what outlives the node.
CREATE TABLE idem_lease (
    name         text        COLLATE "C" NOT NULL PRIMARY KEY,
    holder       text        COLLATE "C" NOT NULL,
    until_at     timestamptz NOT NULL,
    held_since   timestamptz,
    last_pass_at timestamptz
);
INSERT INTO idem_lease (name, holder, until_at) VALUES ('purge', '', clock_timestamp());

-- Times in which nothing may be purged, and who said so.
CREATE TABLE idem_hold (
    id          text        COLLATE "C" NOT NULL PRIMARY KEY,
    reason      text        NOT NULL,
    author      text        NOT NULL,
    placed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL,
    released_at timestamptz,
    released_by text
);

-- A purged key leaves a dead row and two dead index entries. By default the server cleans up after a fifth of the table
-- is dead; a table of keys is better cleaned often and in small pieces.
ALTER TABLE idem_key SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
