//! One key: whether it is there, and deleting it before its time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::store::{Borrowed, ForgetKey, ForgottenRow, NewKey, Store, schema};

/// A key that is in the table: its event was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundKey {
    /// When the event was claimed, by the database's clock.
    pub claimed_at: SystemTime,
    /// How long ago that was, by the database's clock.
    pub age: Duration,
    /// Whether a fingerprint is stored with it.
    pub has_fingerprint: bool,
    /// Whether the handler's result is stored with it.
    pub has_result: bool,
}

/// A key that somebody forgot on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forgotten {
    /// Who forgot it.
    pub author: String,
    /// Why.
    pub reason: String,
    /// How long ago, by the database's clock, in whole seconds.
    pub age: Duration,
}

impl From<ForgottenRow> for Forgotten {
    fn from(row: ForgottenRow) -> Self {
        let age = Duration::from_secs(u64::try_from(row.secs_ago).unwrap_or(0));
        Self { author: row.author, reason: row.reason, age }
    }
}

/// Whether a handler has applied the event with this key: `None` when it has not, or when the key was purged or forgotten.
///
/// For people who ask, and never to decide whether to apply something: between the question and the effect another delivery
/// can come. The handler need not be one of this program.
///
/// # Errors
///
/// [`ErrorKind::Unavailable`] or [`Database`](ErrorKind::Database) when the database could not be asked.
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn find_key<S: Store>(engine: &Engine<S>, handler: &str, key: &Key) -> Result<Option<FoundKey>, Error> {
    refuse_bad_name(handler)?;
    let mut conn = Borrowed::from(engine.pool()).await?;
    let sought = NewKey { handler, event_key: key.as_str(), claim: 0, fingerprint: None, timed: false };
    let row = S::find(&mut conn, engine.statements(), sought).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    let micros = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    Ok(row.map(|row| FoundKey {
        claimed_at: UNIX_EPOCH + micros(row.claimed_micros),
        age: micros(row.now_micros.saturating_sub(row.claimed_micros)),
        has_fingerprint: row.fingerprint.is_some(),
        has_result: row.result.is_some(),
    }))
}

/// Deletes a key before its time, so that the next delivery of its event is applied again. Says whether it was there.
///
/// Who did it, when and why is written down in the same transaction, beside a SHA-256 of the key and not the key itself.
/// The effect of the first delivery stays.
///
/// # Errors
///
/// [`ErrorKind::Registry`] without a reason or an author; [`Unavailable`](ErrorKind::Unavailable) or
/// [`Database`](ErrorKind::Database) when the key could not be deleted.
///
/// # Cancel safety
///
/// Dropped before its end, the key is forgotten and that is written down, or neither is; [`find_key`] tells.
pub async fn forget<S: Store>(
    engine: &Engine<S>,
    handler: &str,
    key: &Key,
    author: &str,
    reason: &str,
) -> Result<bool, Error> {
    refuse_bad_name(handler)?;
    if reason.trim().is_empty() || author.trim().is_empty() {
        let detail = "a key is forgotten with a reason and an author; it was not";
        return Err(Error::new(ErrorKind::Registry).detail(detail));
    }
    let mut conn = Borrowed::from(engine.pool()).await?;
    let digest = digest(key);
    let row = ForgetKey { handler, event_key: key.as_str(), digest: &digest, author, reason };
    let was_there = S::forget(&mut conn, row).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    Ok(was_there)
}

/// When a key was forgotten on purpose, by whom and why, the last time first.
///
/// # Errors
///
/// [`ErrorKind::Unavailable`] or [`Database`](ErrorKind::Database) when the database could not be asked.
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn forgotten<S: Store>(engine: &Engine<S>, handler: &str, key: &Key) -> Result<Vec<Forgotten>, Error> {
    let mut conn = Borrowed::from(engine.pool()).await?;
    let rows = S::forgotten(&mut conn, handler, &digest(key)).await.map_err(schema::connection_error::<S>)?;
    conn.give_back();
    Ok(rows.into_iter().map(Forgotten::from).collect())
}

fn digest(key: &Key) -> [u8; 32] {
    Sha256::digest(key.as_str().as_bytes()).into()
}

/// Some statements take the name as a literal, which is safe for the names that handlers can have.
fn refuse_bad_name(handler: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    if (1..=128).contains(&handler.len()) && handler.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Registry)
        .detail("a handler's name is 1 to 128 of `A-Za-z0-9._:/-`, so no key has this one"))
}
