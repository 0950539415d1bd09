//! SQLite.

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Row, Sqlite};

use super::{ForgetKey, ForgottenRow, HoldRow, RecordedHandler, RecordedRow, Sql, upkeep};

/// Milliseconds since 1970, as in `../sqlite.rs`.
macro_rules! now {
    () => {
        "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
    };
}

const SQL: Sql = Sql {
    persistent: false,
    record: concat!(
        "INSERT INTO idem_handler (application, handler, key_text, retention_secs, first_seen_at, last_seen_at) ",
        "VALUES (?1, ?2, ?3, ?4, ",
        now!(),
        ", ",
        now!(),
        ") ON CONFLICT (application, handler) DO UPDATE ",
        "SET key_text = excluded.key_text, retention_secs = excluded.retention_secs, last_seen_at = ",
        now!(),
    ),
    recorded: concat!(
        "SELECT application, handler, key_text, retention_secs, (",
        now!(),
        " - last_seen_at) / 1000, ",
        "highest_duplicate_age_secs FROM idem_handler ORDER BY handler, application",
    ),
    raise_duplicate_age: "\
        UPDATE idem_handler SET highest_duplicate_age_secs = ?1 \
        WHERE application = ?2 AND handler = ?3 AND highest_duplicate_age_secs < ?4",
    before_delete: None,
    delete_older: concat!(
        "DELETE FROM idem_key WHERE handler = ?1 AND event_key IN (SELECT event_key FROM idem_key ",
        "WHERE handler = ?1 AND claimed_at < ",
        now!(),
        " - ?2 * 1000 ORDER BY claimed_at LIMIT ?3)",
    ),
    count_older: concat!("SELECT count(*) FROM idem_key WHERE handler = ?1 AND claimed_at < ", now!(), " - ?2 * 1000",),
    oldest_secs: concat!("SELECT (", now!(), " - min(claimed_at)) / 1000 FROM idem_key WHERE handler = ?1"),
    take_lease: concat!(
        "UPDATE idem_lease SET holder = ?1, until_at = ",
        now!(),
        " + ?2 * 1000 ",
        "WHERE name = 'purge' AND (until_at < ",
        now!(),
        " OR holder = ?3)",
    ),
    end_lease: concat!(
        "UPDATE idem_lease SET until_at = ",
        now!(),
        ", held_since = NULL, last_pass_at = ",
        now!(),
        " WHERE name = 'purge' AND holder = ?1",
    ),
    begin_wait: concat!("UPDATE idem_lease SET held_since = ", now!(), " WHERE name = 'purge' AND held_since IS NULL"),
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
};

upkeep!(Sqlite, SqliteConnection, SQL);
