//! PostgreSQL.

use futures_util::future::BoxFuture;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Postgres, Row};

use super::sql::{Sql, counted, upkeep};
use super::{Counted, ForgetKey, ForgottenRow, HoldRow, Lengths, RecordedHandler, RecordedRow};

/// `now()`, the start of the transaction, and not `clock_timestamp()`: an index can be searched for what is stable.
const SQL: Sql = Sql {
    persistent: false,
    record: "\
        INSERT INTO idem_handler AS was \
            (application, handler, key_text, retention_secs, semantics, longest_retention_secs, longest_seen_at) \
        VALUES ($1, $2, $3, $4, $5, $4, now()) \
        ON CONFLICT (application, handler) DO UPDATE \
        SET key_text = excluded.key_text, retention_secs = excluded.retention_secs, semantics = excluded.semantics, \
            last_seen_at = now(), \
            longest_retention_secs = \
                greatest(was.longest_retention_secs, was.retention_secs, excluded.retention_secs), \
            longest_seen_at = CASE \
                WHEN coalesce(was.longest_retention_secs, was.retention_secs, 0) > coalesce(excluded.retention_secs, 0) \
                THEN coalesce(was.longest_seen_at, was.last_seen_at) ELSE now() END",
    recorded: "\
        SELECT application, handler, key_text, retention_secs, date_part('epoch', now() - last_seen_at)::bigint, \
               highest_duplicate_age_secs, coalesce(longest_retention_secs, retention_secs), \
               date_part('epoch', now() - coalesce(longest_seen_at, last_seen_at))::bigint \
        FROM idem_handler ORDER BY handler, application",
    settle_retention: "\
        UPDATE idem_handler SET longest_retention_secs = $1, longest_seen_at = now() \
        WHERE application = $2 AND handler = $3 AND coalesce(longest_retention_secs, retention_secs) > $4 \
              AND coalesce(longest_seen_at, last_seen_at) < now() - make_interval(secs => $5::bigint)",
    raise_duplicate_age: "\
        UPDATE idem_handler SET highest_duplicate_age_secs = $1 \
        WHERE application = $2 AND handler = $3 AND highest_duplicate_age_secs < $4",
    // A batch that a crash of the server undoes is made again.
    begin_batch: "\
        BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '30s'; \
        SET LOCAL synchronous_commit = off",
    // A row that somebody else holds is left for the next pass. By its place, so that no plan can be a bad one.
    delete_older: "\
        DELETE FROM idem_key WHERE ctid = ANY (ARRAY( \
            SELECT ctid FROM idem_key WHERE handler = $1 AND claimed_at < now() - make_interval(secs => $2::bigint) \
            ORDER BY claimed_at LIMIT $3 FOR UPDATE SKIP LOCKED))",
    count_older: "\
        SELECT count(*) FROM idem_key WHERE handler = $1 AND claimed_at < now() - make_interval(secs => $2::bigint)",
    oldest_secs: "SELECT date_part('epoch', now() - min(claimed_at))::bigint FROM idem_key WHERE handler = $1",
    take_lease: "\
        UPDATE idem_lease SET holder = $1, until_at = now() + make_interval(secs => $2::bigint), seen_at = now() \
        WHERE name = 'purge' AND (until_at < now() OR holder = $3)",
    end_lease: "\
        UPDATE idem_lease SET until_at = now(), held_since = NULL, last_pass_at = now(), seen_at = now() \
        WHERE name = 'purge' AND holder = $1",
    release_lease: "UPDATE idem_lease SET until_at = now() WHERE name = 'purge' AND holder = $1",
    begin_wait: "\
        UPDATE idem_lease SET seen_at = now(), held_since = CASE \
            WHEN coalesce(seen_at, held_since) >= now() - make_interval(secs => $1::bigint) AND held_since IS NOT NULL \
            THEN held_since ELSE now() END \
        WHERE name = 'purge' AND (held_since IS NULL OR seen_at IS NULL OR seen_at < now() - interval '30 seconds')",
    waiting_secs: "\
        SELECT date_part('epoch', now() - held_since)::bigint FROM idem_lease WHERE name = 'purge'",
    holds: "\
        SELECT id, reason, author, date_part('epoch', expires_at - now())::bigint FROM idem_hold \
        WHERE released_at IS NULL AND expires_at > now() ORDER BY placed_at, id",
    place_hold: "\
        INSERT INTO idem_hold (id, reason, author, expires_at) \
        VALUES ($1, $2, $3, now() + make_interval(secs => $4::bigint))",
    release_hold: "\
        UPDATE idem_hold SET released_at = now(), released_by = $1 \
        WHERE id = $2 AND released_at IS NULL AND expires_at > now()",
    write_down_forgotten: "\
        INSERT INTO idem_forgotten (handler, key_digest, claimed_at, author, reason) \
        SELECT handler, $1::bytea, claimed_at, $2::text, $3::text FROM idem_key WHERE handler = $4 AND event_key = $5",
    forget: "DELETE FROM idem_key WHERE handler = $1 AND event_key = $2",
    forgotten: "\
        SELECT author, reason, date_part('epoch', now() - forgotten_at)::bigint FROM idem_forgotten \
        WHERE handler = $1 AND key_digest = $2 ORDER BY forgotten_at DESC",
    count: "\
        SELECT count(*), date_part('epoch', now() - min(claimed_at))::bigint, \
               date_part('epoch', now() - max(claimed_at))::bigint \
        FROM (SELECT claimed_at FROM idem_key WHERE handler = $1 ORDER BY claimed_at LIMIT $2) AS counted",
    count_younger: "\
        SELECT count(*), date_part('epoch', now() - min(claimed_at))::bigint, \
               date_part('epoch', now() - max(claimed_at))::bigint \
        FROM (SELECT claimed_at FROM idem_key \
              WHERE handler = $1 AND claimed_at > now() - make_interval(secs => $2::bigint) \
              ORDER BY claimed_at DESC LIMIT $3) AS counted",
    lengths: "\
        SELECT avg(key_length)::bigint, avg(rest_length)::bigint \
        FROM (SELECT octet_length(event_key) AS key_length, \
                     coalesce(octet_length(fingerprint), 0) + coalesce(octet_length(result), 0) AS rest_length \
              FROM idem_key WHERE handler = $1 ORDER BY claimed_at DESC LIMIT 100) AS newest",
    row_bytes: |Lengths { handler, event_key, rest }| {
        46 + handler + event_key + rest + (35 + 2 * handler + event_key) * 11 / 10
    },
};

upkeep!(Postgres, PgConnection, SQL);
