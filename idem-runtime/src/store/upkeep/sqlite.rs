//! SQLite.

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row, Sqlite};

use super::sql::{Sql, counted, upkeep};
use super::{Counted, ForgetKey, ForgottenRow, HoldRow, Lengths, RecordedHandler, RecordedRow};

/// Milliseconds since 1970, as in `../sqlite.rs`.
macro_rules! now {
    () => {
        "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
    };
}

const SQL: Sql = Sql {
    persistent: false,
    record: concat!(
        "INSERT INTO idem_handler (application, handler, key_text, retention_secs, semantics, longest_retention_secs, ",
        "first_seen_at, last_seen_at, longest_seen_at) VALUES (?1, ?2, ?3, ?4, ?5, ?4, ",
        now!(),
        ", ",
        now!(),
        ", ",
        now!(),
        ") ON CONFLICT (application, handler) DO UPDATE ",
        "SET key_text = excluded.key_text, retention_secs = excluded.retention_secs, semantics = excluded.semantics, ",
        "last_seen_at = excluded.last_seen_at, ",
        "longest_retention_secs = max(coalesce(longest_retention_secs, retention_secs, excluded.retention_secs), ",
        "coalesce(excluded.retention_secs, 0)), ",
        "longest_seen_at = CASE ",
        "WHEN coalesce(longest_retention_secs, retention_secs, 0) > coalesce(excluded.retention_secs, 0) ",
        "THEN coalesce(longest_seen_at, last_seen_at) ELSE excluded.longest_seen_at END",
    ),
    recorded: concat!(
        "SELECT application, handler, key_text, retention_secs, (",
        now!(),
        " - last_seen_at) / 1000, highest_duplicate_age_secs, coalesce(longest_retention_secs, retention_secs), (",
        now!(),
        " - coalesce(longest_seen_at, last_seen_at)) / 1000 FROM idem_handler ORDER BY handler, application",
    ),
    settle_retention: concat!(
        "UPDATE idem_handler SET longest_retention_secs = ?1, longest_seen_at = ",
        now!(),
        " WHERE application = ?2 AND handler = ?3 AND coalesce(longest_retention_secs, retention_secs) > ?4 ",
        "AND coalesce(longest_seen_at, last_seen_at) < ",
        now!(),
        " - ?5 * 1000",
    ),
    raise_duplicate_age: "\
        UPDATE idem_handler SET highest_duplicate_age_secs = ?1 \
        WHERE application = ?2 AND handler = ?3 AND highest_duplicate_age_secs < ?4",
    begin_batch: "BEGIN IMMEDIATE",
    delete_older: concat!(
        "DELETE FROM idem_key WHERE handler = ?1 AND event_key IN (SELECT event_key FROM idem_key ",
        "WHERE handler = ?1 AND claimed_at < ",
        now!(),
        " - ?2 * 1000 ORDER BY claimed_at LIMIT ?3)",
    ),
    count_older: concat!("SELECT count(*) FROM idem_key WHERE handler = ?1 AND claimed_at < ", now!(), " - ?2 * 1000"),
    oldest_secs: concat!("SELECT (", now!(), " - min(claimed_at)) / 1000 FROM idem_key WHERE handler = ?1"),
    take_lease: concat!(
        "UPDATE idem_lease SET holder = ?1, until_at = ",
        now!(),
        " + ?2 * 1000, seen_at = ",
        now!(),
        " WHERE name = 'purge' AND (until_at < ",
        now!(),
        " OR holder = ?3)",
    ),
    end_lease: concat!(
        "UPDATE idem_lease SET until_at = ",
        now!(),
        ", held_since = NULL, last_pass_at = ",
        now!(),
        ", seen_at = ",
        now!(),
        " WHERE name = 'purge' AND holder = ?1",
    ),
    release_lease: concat!("UPDATE idem_lease SET until_at = ", now!(), " WHERE name = 'purge' AND holder = ?1"),
    begin_wait: concat!(
        "UPDATE idem_lease SET seen_at = ",
        now!(),
        ", held_since = CASE WHEN held_since IS NOT NULL AND coalesce(seen_at, held_since) >= ",
        now!(),
        " - ?1 * 1000 THEN held_since ELSE ",
        now!(),
        " END WHERE name = 'purge' AND (held_since IS NULL OR seen_at IS NULL OR seen_at < ",
        now!(),
        " - 30000)",
    ),
    waiting_secs: concat!("SELECT (", now!(), " - held_since) / 1000 FROM idem_lease WHERE name = 'purge'"),
    holds: concat!(
        "SELECT id, reason, author, (expires_at - ",
        now!(),
        ") / 1000 FROM idem_hold ",
        "WHERE released_at IS NULL AND expires_at > ",
        now!(),
        " ORDER BY placed_at, id",
    ),
    place_hold: concat!(
        "INSERT INTO idem_hold (id, reason, author, placed_at, expires_at) ",
        "VALUES (?1, ?2, ?3, ",
        now!(),
        ", ",
        now!(),
        " + ?4 * 1000)",
    ),
    release_hold: concat!(
        "UPDATE idem_hold SET released_at = ",
        now!(),
        ", released_by = ?1 ",
        "WHERE id = ?2 AND released_at IS NULL AND expires_at > ",
        now!(),
    ),
    write_down_forgotten: concat!(
        "INSERT INTO idem_forgotten (handler, key_digest, claimed_at, forgotten_at, author, reason) ",
        "SELECT handler, ?1, claimed_at, ",
        now!(),
        ", ?2, ?3 FROM idem_key WHERE handler = ?4 AND event_key = ?5",
    ),
    forget: "DELETE FROM idem_key WHERE handler = ?1 AND event_key = ?2",
    forgotten: concat!(
        "SELECT author, reason, (",
        now!(),
        " - forgotten_at) / 1000 FROM idem_forgotten WHERE handler = ?1 AND key_digest = ?2 ",
        "ORDER BY forgotten_at DESC",
    ),
    count: concat!(
        "SELECT count(*), (",
        now!(),
        " - min(claimed_at)) / 1000, (",
        now!(),
        " - max(claimed_at)) / 1000 ",
        "FROM (SELECT claimed_at FROM idem_key WHERE handler = ?1 ORDER BY claimed_at LIMIT ?2)",
    ),
    count_younger: concat!(
        "SELECT count(*), (",
        now!(),
        " - min(claimed_at)) / 1000, (",
        now!(),
        " - max(claimed_at)) / 1000 ",
        "FROM (SELECT claimed_at FROM idem_key WHERE handler = ?1 AND claimed_at > ",
        now!(),
        " - ?2 * 1000 ORDER BY claimed_at DESC LIMIT ?3)",
    ),
    lengths: "\
        SELECT CAST(avg(key_length) AS INTEGER), CAST(avg(rest_length) AS INTEGER) \
        FROM (SELECT length(event_key) AS key_length, \
                     coalesce(length(fingerprint), 0) + coalesce(length(result), 0) AS rest_length \
              FROM idem_key WHERE handler = ?1 ORDER BY claimed_at DESC LIMIT 100)",
    row_bytes: |Lengths { handler, event_key, rest }| (32 + 2 * handler + 2 * event_key + rest) * 12 / 10,
};

upkeep!(Sqlite, SqliteConnection, SQL);
