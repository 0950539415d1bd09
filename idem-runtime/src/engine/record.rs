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

/// Writes down every handler with its key and its retention. A key that was another one before forgets what is stored,
/// and a shorter retention gives keys to the purge that were safe before. A database that is read-only is not written to:
/// it cannot be purged either.
pub(super) async fn handlers<S: Store>(
    conn: &mut S::Connection,
    statements: &Statements,
    application: &str,
    registry: &Registry,
) -> Result<(), Error> {
    if application.is_empty() || application.len() > 128 || !application.is_ascii() {
        return Err(Error::new(ErrorKind::Registry)
            .detail(format!("the application's name is 1 to 128 characters of ASCII, and not `{application}`")));
    }
    let recorded = recorded::<S>(conn, application).await?;
    compare(registry, &recorded);
    write_down::<S>(conn, statements, application, registry, &recorded).await
}

/// Says once more that a node with these handlers runs. The purge of another release keeps their keys as long as they want.
pub(super) async fn still_here<S: Store>(
    conn: &mut S::Connection,
    statements: &Statements,
    application: &str,
    registry: &Registry,
) -> Result<(), Error> {
    let recorded = recorded::<S>(conn, application).await?;
    write_down::<S>(conn, statements, application, registry, &recorded).await
}

async fn recorded<S: Store>(conn: &mut S::Connection, application: &str) -> Result<Vec<RecordedRow>, Error> {
    let recorded = S::recorded(conn).await.map_err(|error| schema::connection_error::<S>(error))?;
    Ok(recorded.into_iter().filter(|row| row.application == application).collect())
}

async fn write_down<S: Store>(
    conn: &mut S::Connection,
    statements: &Statements,
    application: &str,
    registry: &Registry,
    recorded: &[RecordedRow],
) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        let error = match write::<S>(conn, statements, application, registry, recorded).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match S::fault(&error) {
            Fault::ReadOnly => {
                telemetry::not_recorded(&error);
                return Ok(());
            }
            Fault::Contention | Fault::LockTimeout if tries < TRIES => {
                tokio::time::sleep(super::setback::pause(tries)).await;
                tries += 1;
            }
            _ => return Err(schema::connection_error::<S>(error)),
        }
    }
}

/// Says what is another than before.
fn compare(registry: &Registry, recorded: &[RecordedRow]) {
    for meta in registry.handlers() {
        let Some(before) = recorded.iter().find(|row| row.handler == meta.name) else {
            continue;
        };
        let key_text = meta.key.join(", ");
        if before.key_text != key_text {
            telemetry::key_changed(meta, &before.key_text, &key_text);
        }
        if let (Some(was_secs), Some(secs)) = (before.longest_retention_secs, meta.retention.map(seconds))
            && secs < was_secs
        {
            telemetry::retention_shortened(meta, was_secs, secs);
        }
    }
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
        semantics: meta.semantics.name(),
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
        && (row.longest_retention_secs > row.retention_secs || row.longest_seen_secs_ago < FRESH_SECS)
}

/// Seconds as the stores take them; a retention has at most a hundred years of them.
pub(crate) fn seconds(retention: Retention) -> i64 {
    i64::try_from(retention.as_secs()).unwrap_or(i64::MAX)
}
