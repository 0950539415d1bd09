//! At which age duplicates come, and that this node is there: what the purge goes by, and what people decide by.

use std::sync::atomic::Ordering;

use super::{Engine, Start, record};
use crate::error::Error;
use crate::store::{Borrowed, Store, schema};

impl<S: Store> Engine<S> {
    /// Writes down how old the first sight of an event was, at most, when a duplicate of it came: evidence for a longer or a
    /// shorter retention, kept across restarts. A [`Purger`](crate::Purger) does it on each of its rounds, so that this is
    /// for programs without one, and for the moment before a program ends.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Database`](crate::ErrorKind::Database) when it could not be
    /// written. Nothing is lost: it is kept for the next call.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was not written is kept for the next call.
    pub async fn flush_ages(&self) -> Result<(), Error> {
        for (handler, seen) in &self.inner.seen {
            let secs = seen.highest_age.load(Ordering::Relaxed);
            if secs <= seen.written_age.load(Ordering::Relaxed) {
                continue;
            }
            let mut conn = Borrowed::from(self.pool()).await?;
            let age = i64::try_from(secs).unwrap_or(i64::MAX);
            S::raise_duplicate_age(&mut conn, self.application(), handler, age)
                .await
                .map_err(|error| schema::connection_error::<S>(error))?;
            conn.give_back();
            seen.written_age.fetch_max(secs, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Tells the purge of other releases that this node's handlers still want their keys. A visitor's do not.
    pub(crate) async fn still_here(&self) -> Result<(), Error> {
        let inner = &*self.inner;
        if inner.start == Start::Visitor {
            return Ok(());
        }
        let mut conn = Borrowed::from(self.pool()).await?;
        record::still_here::<S>(&mut conn, &inner.statements, &inner.application, &inner.registry).await?;
        conn.give_back();
        Ok(())
    }

    pub(super) fn note_duplicate_age(&self, handler: &str, secs: u64) {
        if let Some(seen) = self.inner.seen.get(handler) {
            seen.highest_age.fetch_max(secs, Ordering::Relaxed);
        }
    }
}
