//! What a node writes down of its handlers when it starts: the purge of any node reads it.

use crate::error::{Error, ErrorKind};
use crate::registry::Registry;
use crate::retention::Retention;
use crate::store::{RecordedHandler, Store, schema};
use crate::telemetry;

/// A handler whose retention is shorter than the one that was written down before.
#[derive(Debug)]
pub(crate) struct Shortened {
    pub(crate) handler: &'static str,
    pub(crate) was_secs: i64,
}

/// Writes down every handler with its key and its retention. A key that was another one before forgets what is stored,
/// and a shorter retention gives keys to the purge that were safe before.
pub(super) async fn handlers<S: Store>(
    conn: &mut S::Connection,
    application: &str,
    registry: &Registry,
) -> Result<Vec<Shortened>, Error> {
    if application.is_empty() || application.len() > 128 || !application.is_ascii() {
        return Err(Error::new(ErrorKind::Registry)
            .detail(format!("the application's name is 1 to 128 characters of ASCII, and not `{application}`")));
    }
    let recorded = S::recorded(conn).await.map_err(|error| schema::connection_error::<S>(error))?;
    let mut shortened = Vec::new();
    for meta in registry.handlers() {
        let key_text = meta.key.join(", ");
        let retention_secs = meta.retention.map(seconds);
        if let Some(before) = recorded.iter().find(|row| row.application == application && row.handler == meta.name) {
            if before.key_text != key_text {
                telemetry::key_changed(meta, &before.key_text, &key_text);
            }
            if let (Some(was_secs), Some(secs)) = (before.retention_secs, retention_secs)
                && secs < was_secs
            {
                telemetry::retention_shortened(meta, was_secs, secs);
                shortened.push(Shortened { handler: meta.name, was_secs });
            }
        }
        let handler = RecordedHandler { application, handler: meta.name, key_text: &key_text, retention_secs };
        S::record(conn, handler).await.map_err(|error| schema::connection_error::<S>(error))?;
    }
    Ok(shortened)
}

/// Seconds as the stores take them; a retention has at most a hundred years of them.
pub(crate) fn seconds(retention: Retention) -> i64 {
    i64::try_from(retention.as_secs()).unwrap_or(i64::MAX)
}
