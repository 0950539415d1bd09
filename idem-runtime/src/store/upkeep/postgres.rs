//! PostgreSQL.

use futures_util::future::BoxFuture;
use sqlx::postgres::PgConnection;
use sqlx::{Postgres, Row};

use super::{ForgetKey, ForgottenRow, HoldRow, RecordedHandler, RecordedRow, Sql, upkeep};

/// `now()`, the start of the transaction, and not `clock_timestamp()`: an index can be searched for what is stable.
const SQL: Sql = Sql {
    persistent: false,
    record: "\
        INSERT INTO idem_handler (application, handler, key_text, retention_secs) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (application, handler) DO UPDATE \
        SET key_text = excluded.key_text, retention_secs = excluded.retention_secs, last_seen_at = now()",
    recorded: "\
        SELECT application, handler, key_text, retention_secs, date_part('epoch', now() - last_seen_at)::bigint, \
               highest_duplicate_age_secs \
        FROM idem_handler ORDER BY handler, application",
    raise_duplicate_age: "\
        UPDATE idem_handler SET highest_duplicate_age_secs = $1 \
        WHERE application = $2 AND handler = $3 AND highest_duplicate_age_secs < $4",
    before_delete: None,
    // A row that somebody else holds is left for the next pass. By its place, so that no plan can be a bad one.
    delete_older: "\
        DELETE FROM idem_key WHERE ctid = ANY (ARRAY( \
            SELECT ctid FROM idem_key WHERE handler = $1 AND claimed_at < now() - make_interval(secs => $2::bigint) \
            ORDER BY claimed_at LIMIT $3 FOR UPDATE SKIP LOCKED))",
    count_older: "\
        SELECT count(*) FROM idem_key WHERE handler = $1 AND claimed_at < now() - make_interval(secs => $2::bigint)",
    oldest_secs: "SELECT date_part('epoch', now() - min(claimed_at))::bigint FROM idem_key WHERE handler = $1",
    take_lease: "\
        UPDATE idem_lease SET holder = $1, until_at = now() + make_interval(secs => $2::bigint) \
        WHERE name = 'purge' AND (until_at < now() OR holder = $3)",
    end_lease: "\
        UPDATE idem_lease SET until_at = now(), held_since = NULL, last_pass_at = now() \
        WHERE name = 'purge' AND holder = $1",
    begin_wait: "UPDATE idem_lease SET held_since = now() WHERE name = 'purge' AND held_since IS NULL",
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
};

upkeep!(Postgres, PgConnection, SQL);
