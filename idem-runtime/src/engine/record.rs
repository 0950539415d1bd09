//! What a node writes down of its handlers when it starts: the purge of any node reads it.

use crate::error::{Error, ErrorKind};
use crate::registry::Registry;
use crate::retention::Retention;
use crate::store::{CommitError, Fault, RecordedHandler, RecordedRow, Statements, Store, schema};
use crate::telemetry;

/// How often it is tried, where other nodes start at the same moment.
const TRIES: u32 = 5;

/// What was written down within this time is not written again.
const FRESH_SECS: i64 = 3_600;

/// A handler whose retention is shorter than the one that was written down before.
#[derive(Debug)]
pub(crate) struct Shortened {
    pub(crate) handler: &'static str,
    pub(crate) was_secs: i64,
}

/// Writes down every handler with its key and its retention. A key that was another one before forgets what is stored,
/// and a shorter retention gives keys to the purge that were safe before. A database that is read-only is not written to:
/// it cannot be purged either.
pub(super) async fn handlers<S: Store>(
    conn: &mut S::Connection,
    statements: &Statements,
    application: &str,
    registry: &Registry,
) -> Result<Vec<Shortened>, Error> {
    if application.is_empty() || application.len() > 128 || !application.is_ascii() {
        return Err(Error::new(ErrorKind::Registry)
            .detail(format!("the application's name is 1 to 128 characters of ASCII, and not `{application}`")));
    }
    let recorded = S::recorded(conn).await.map_err(|error| schema::connection_error::<S>(error))?;
    let recorded: Vec<_> = recorded.into_iter().filter(|row| row.application == application).collect();
    let shortened = compare(registry, &recorded);
    let mut tries = 1;
    loop {
        let error = match write::<S>(conn, statements, application, registry, &recorded).await {
            Ok(()) => return Ok(shortened),
            Err(error) => error,
        };
        match S::fault(&error) {
            Fault::ReadOnly => {
                telemetry::not_recorded(&error);
                return Ok(shortened);
            }
            Fault::Contention | Fault::LockTimeout if tries < TRIES => {
                tokio::time::sleep(super::setback::pause(tries)).await;
                tries += 1;
            }
            _ => return Err(schema::connection_error::<S>(error)),
        }
    }
}

/// Says again that the handlers are here, once an hour at most. What another release has written down since is left alone.
pub(super) async fn again<S: Store>(
    conn: &mut S::Connection,
    application: &str,
    registry: &Registry,
) -> sqlx::Result<()> {
    let recorded = S::recorded(conn).await?;
    for row in recorded.iter().filter(|row| row.application == application && row.seen_secs_ago >= FRESH_SECS) {
        let Some(meta) = registry.get(&row.handler) else {
            continue;
        };
        let (key_text, retention_secs) = (meta.key.join(", "), meta.retention.map(seconds));
        if row.key_text == key_text && row.retention_secs == retention_secs {
            let handler = RecordedHandler { application, handler: meta.name, key_text: &key_text, retention_secs };
            S::record(conn, handler).await?;
        }
    }
    Ok(())
}

/// Says what is another than before.
fn compare(registry: &Registry, recorded: &[RecordedRow]) -> Vec<Shortened> {
    let mut shortened = Vec::new();
    for meta in registry.handlers() {
        let Some(before) = recorded.iter().find(|row| row.handler == meta.name) else {
            continue;
        };
        let key_text = meta.key.join(", ");
        if before.key_text != key_text {
            telemetry::key_changed(meta, &before.key_text, &key_text);
        }
        if let (Some(was_secs), Some(secs)) = (before.retention_secs, meta.retention.map(seconds))
            && secs < was_secs
        {
            telemetry::retention_shortened(meta, was_secs, secs);
            shortened.push(Shortened { handler: meta.name, was_secs });
        }
    }
    shortened
}

/// All of them in one transaction.
async fn write<S: Store>(
    conn: &mut S::Connection,
    statements: &Statements,
    application: &str,
    registry: &Registry,
    recorded: &[RecordedRow],
) -> sqlx::Result<()> {
    let texts: Vec<_> = registry.handlers().map(|meta| meta.key.join(", ")).collect();
    let handlers = registry.handlers().zip(&texts).map(|(meta, key_text)| RecordedHandler {
        application,
        handler: meta.name,
        key_text,
        retention_secs: meta.retention.map(seconds),
    });
    let news: Vec<_> = handlers.filter(|handler| !recorded.iter().any(|row| is_fresh(row, handler))).collect();
    if news.is_empty() {
        return Ok(());
    }
    let mut tx = S::begin(conn, &statements.begin_unkeyed).await?;
    for handler in news {
        if let Err(error) = S::record(&mut tx, handler).await {
            S::rollback(tx).await;
            return Err(error);
        }
    }
    S::commit(tx).await.map_err(|error| match error {
        CommitError::Aborted(error) | CommitError::Escaped(error) => error,
        CommitError::Refused(error) | CommitError::Lost(error) => error,
    })
}

fn is_fresh(row: &RecordedRow, handler: &RecordedHandler<'_>) -> bool {
    row.handler == handler.handler
        && row.key_text == handler.key_text
        && row.retention_secs == handler.retention_secs
        && row.seen_secs_ago < FRESH_SECS
}

/// Seconds as the stores take them; a retention has at most a hundred years of them.
pub(crate) fn seconds(retention: Retention) -> i64 {
    i64::try_from(retention.as_secs()).unwrap_or(i64::MAX)
}
