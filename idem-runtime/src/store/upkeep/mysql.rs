//! MySQL and MariaDB.

use futures_util::future::BoxFuture;
use sqlx::mysql::MySqlConnection;
use sqlx::{MySql, Row};

use super::{ForgetKey, ForgottenRow, HoldRow, RecordedHandler, RecordedRow, Sql, upkeep};

const SQL: Sql = Sql {
    persistent: true,
    record: "\
        INSERT INTO idem_handler (application, handler, key_text, retention_secs, first_seen_at, last_seen_at) \
        VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)) \
        ON DUPLICATE KEY UPDATE key_text = VALUES(key_text), retention_secs = VALUES(retention_secs), \
                                last_seen_at = UTC_TIMESTAMP(6)",
    recorded: "\
        SELECT application, handler, key_text, retention_secs, \
               TIMESTAMPDIFF(SECOND, last_seen_at, UTC_TIMESTAMP(6)), highest_duplicate_age_secs \
        FROM idem_handler ORDER BY handler, application",
    raise_duplicate_age: "\
        UPDATE idem_handler SET highest_duplicate_age_secs = ? \
        WHERE application = ? AND handler = ? AND highest_duplicate_age_secs < ?",
    // Of the next transaction alone. A stricter one locks the gaps between the keys against whoever inserts.
    before_delete: Some("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
    delete_older: "\
        DELETE FROM idem_key WHERE handler = ? AND claimed_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND \
        ORDER BY claimed_at LIMIT ?",
    count_older: "\
        SELECT COUNT(*) FROM idem_key WHERE handler = ? AND claimed_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND",
    oldest_secs: "SELECT TIMESTAMPDIFF(SECOND, MIN(claimed_at), UTC_TIMESTAMP(6)) FROM idem_key WHERE handler = ?",
    take_lease: "\
        UPDATE idem_lease SET holder = ?, until_at = UTC_TIMESTAMP(6) + INTERVAL ? SECOND \
        WHERE name = 'purge' AND (until_at < UTC_TIMESTAMP(6) OR holder = ?)",
    end_lease: "\
        UPDATE idem_lease SET until_at = UTC_TIMESTAMP(6), held_since = NULL, last_pass_at = UTC_TIMESTAMP(6) \
        WHERE name = 'purge' AND holder = ?",
    begin_wait: "UPDATE idem_lease SET held_since = UTC_TIMESTAMP(6) WHERE name = 'purge' AND held_since IS NULL",
    waiting_secs: "\
        SELECT TIMESTAMPDIFF(SECOND, held_since, UTC_TIMESTAMP(6)) FROM idem_lease WHERE name = 'purge'",
    holds: "\
        SELECT id, reason, author, TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), expires_at) FROM idem_hold \
        WHERE released_at IS NULL AND expires_at > UTC_TIMESTAMP(6) ORDER BY placed_at, id",
    place_hold: "\
        INSERT INTO idem_hold (id, reason, author, placed_at, expires_at) \
        VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? SECOND)",
    release_hold: "\
        UPDATE idem_hold SET released_at = UTC_TIMESTAMP(6), released_by = ? \
        WHERE id = ? AND released_at IS NULL AND expires_at > UTC_TIMESTAMP(6)",
    write_down_forgotten: "\
        INSERT INTO idem_forgotten (handler, key_digest, claimed_at, forgotten_at, author, reason) \
        SELECT handler, ?, claimed_at, UTC_TIMESTAMP(6), ?, ? FROM idem_key WHERE handler = ? AND event_key = ?",
    forget: "DELETE FROM idem_key WHERE handler = ? AND event_key = ?",
    forgotten: "\
        SELECT author, reason, TIMESTAMPDIFF(SECOND, forgotten_at, UTC_TIMESTAMP(6)) FROM idem_forgotten \
        WHERE handler = ? AND key_digest = ? ORDER BY forgotten_at DESC",
};

upkeep!(MySql, MySqlConnection, SQL);
