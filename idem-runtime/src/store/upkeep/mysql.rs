//! MySQL and MariaDB.

use futures_util::future::BoxFuture;
use sqlx::mysql::MySqlConnection;
use sqlx::{Connection, MySql, Row};

use super::sql::{Sql, counted, upkeep};
use super::{Counted, ForgetKey, ForgottenRow, HoldRow, Lengths, RecordedHandler, RecordedRow};

const SQL: Sql = Sql {
    persistent: true,
    record: "\
        INSERT INTO idem_handler (application, handler, key_text, retention_secs, semantics, longest_retention_secs, \
                                  first_seen_at, last_seen_at, longest_seen_at) \
        VALUES (?, ?, ?, ?, ?, retention_secs, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)) \
        ON DUPLICATE KEY UPDATE \
            longest_seen_at = IF(COALESCE(longest_retention_secs, retention_secs, 0) > COALESCE(VALUES(retention_secs), 0), \
                                 COALESCE(longest_seen_at, last_seen_at), UTC_TIMESTAMP(6)), \
            longest_retention_secs = \
                GREATEST(COALESCE(longest_retention_secs, retention_secs, VALUES(retention_secs)), \
                         COALESCE(VALUES(retention_secs), 0)), \
            key_text = VALUES(key_text), retention_secs = VALUES(retention_secs), semantics = VALUES(semantics), \
            last_seen_at = UTC_TIMESTAMP(6)",
    recorded: "\
        SELECT application, handler, key_text, retention_secs, \
               TIMESTAMPDIFF(SECOND, last_seen_at, UTC_TIMESTAMP(6)), highest_duplicate_age_secs, \
               COALESCE(longest_retention_secs, retention_secs), \
               TIMESTAMPDIFF(SECOND, COALESCE(longest_seen_at, last_seen_at), UTC_TIMESTAMP(6)) \
        FROM idem_handler ORDER BY handler, application",
    settle_retention: "\
        UPDATE idem_handler SET longest_retention_secs = ?, longest_seen_at = UTC_TIMESTAMP(6) \
        WHERE application = ? AND handler = ? AND COALESCE(longest_retention_secs, retention_secs) > ? \
              AND COALESCE(longest_seen_at, last_seen_at) < UTC_TIMESTAMP(6) - INTERVAL ? SECOND",
    raise_duplicate_age: "\
        UPDATE idem_handler SET highest_duplicate_age_secs = ? \
        WHERE application = ? AND handler = ? AND highest_duplicate_age_secs < ?",
    // Of the next transaction alone. A stricter one locks the gaps between the keys against whoever inserts.
    begin_batch: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION",
    // To MySQL the bound is a comment, and its own `innodb_lock_wait_timeout` holds. Joined, since `DELETE … ORDER BY` takes
    // no hint, and MariaDB then reads and sorts all keys of the handler for each batch.
    delete_older: "\
        /*M!100101 SET STATEMENT innodb_lock_wait_timeout = 5, lock_wait_timeout = 5 FOR */ \
        DELETE doomed FROM idem_key AS doomed JOIN ( \
            SELECT handler, event_key FROM idem_key FORCE INDEX (idem_key_age) \
            WHERE handler = ? AND claimed_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND \
            ORDER BY claimed_at LIMIT ?) AS oldest USING (handler, event_key)",
    count_older: "\
        SELECT COUNT(*) FROM idem_key WHERE handler = ? AND claimed_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND",
    oldest_secs: "SELECT TIMESTAMPDIFF(SECOND, MIN(claimed_at), UTC_TIMESTAMP(6)) FROM idem_key WHERE handler = ?",
    take_lease: "\
        UPDATE idem_lease SET holder = ?, until_at = UTC_TIMESTAMP(6) + INTERVAL ? SECOND, \
                              seen_at = UTC_TIMESTAMP(6) \
        WHERE name = 'purge' AND (until_at < UTC_TIMESTAMP(6) OR holder = ?)",
    end_lease: "\
        UPDATE idem_lease SET until_at = UTC_TIMESTAMP(6), held_since = NULL, last_pass_at = UTC_TIMESTAMP(6), \
                              seen_at = UTC_TIMESTAMP(6) \
        WHERE name = 'purge' AND holder = ?",
    release_lease: "UPDATE idem_lease SET until_at = UTC_TIMESTAMP(6) WHERE name = 'purge' AND holder = ?",
    // From left to right, so that the first reads what the second writes.
    begin_wait: "\
        UPDATE idem_lease SET \
            held_since = IF(held_since IS NULL OR COALESCE(seen_at, held_since) < UTC_TIMESTAMP(6) - INTERVAL ? SECOND, \
                            UTC_TIMESTAMP(6), held_since), \
            seen_at = UTC_TIMESTAMP(6) \
        WHERE name = 'purge' \
              AND (held_since IS NULL OR seen_at IS NULL OR seen_at < UTC_TIMESTAMP(6) - INTERVAL 30 SECOND)",
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
    count: "\
        SELECT COUNT(*), TIMESTAMPDIFF(SECOND, MIN(claimed_at), UTC_TIMESTAMP(6)), \
               TIMESTAMPDIFF(SECOND, MAX(claimed_at), UTC_TIMESTAMP(6)) \
        FROM (SELECT claimed_at FROM idem_key WHERE handler = ? ORDER BY claimed_at LIMIT ?) AS counted",
    count_younger: "\
        SELECT COUNT(*), TIMESTAMPDIFF(SECOND, MIN(claimed_at), UTC_TIMESTAMP(6)), \
               TIMESTAMPDIFF(SECOND, MAX(claimed_at), UTC_TIMESTAMP(6)) \
        FROM (SELECT claimed_at FROM idem_key \
              WHERE handler = ? AND claimed_at > UTC_TIMESTAMP(6) - INTERVAL ? SECOND \
              ORDER BY claimed_at DESC LIMIT ?) AS counted",
    lengths: "\
        SELECT CAST(AVG(key_length) AS SIGNED), CAST(AVG(rest_length) AS SIGNED) \
        FROM (SELECT LENGTH(event_key) AS key_length, \
                     COALESCE(LENGTH(fingerprint), 0) + COALESCE(LENGTH(result), 0) AS rest_length \
              FROM idem_key WHERE handler = ? ORDER BY claimed_at DESC LIMIT 100) AS newest",
    row_bytes: |Lengths { handler, event_key, rest }| {
        (36 + handler + event_key + rest) * 17 / 10 + (15 + handler + event_key) * 18 / 10
    },
};

upkeep!(MySql, MySqlConnection, SQL);
