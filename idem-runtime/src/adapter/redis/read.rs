//! Reading entries: first what was given back or abandoned, then what nobody has read yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::{RedisError, cmd};
use tokio::time::Instant;

use super::super::{Delivery, Incoming};
use super::link::Links;
use super::{BLOCK, Place, RedisReceipt, as_millis, scripts};
use crate::{clock, telemetry};

/// How often it is looked for entries that were given back or abandoned.
const CLAIM: Duration = Duration::from_millis(500);

/// The cursor of a scan that is at its beginning, or at its end.
const BEGINNING: &str = "0-0";

/// The fields of an entry, names and values by turns.
type Fields = Vec<Vec<u8>>;

/// Ids and fields.
type Entries = Vec<(String, Fields)>;

type Fetch = BoxFuture<'static, Result<Fetched, RedisError>>;

/// What is being read. It outlives a call that is dropped, so that what Redis handed out meanwhile comes with the next one.
pub(super) struct Reading {
    fetch: Option<Fetch>,
    ready: VecDeque<Delivery<RedisReceipt>>,
    cursor: String,
    claimed: Option<Instant>,
}

impl Default for Reading {
    fn default() -> Self {
        Self { fetch: None, ready: VecDeque::new(), cursor: BEGINNING.to_owned(), claimed: None }
    }
}

struct Fetched {
    entries: Vec<Delivery<RedisReceipt>>,
    /// Where to go on with looking for what was given back, if it was looked for.
    cursor: Option<String>,
}

impl Reading {
    /// Waits for entries, and returns at most `max`.
    pub(super) async fn next(
        &mut self,
        links: &Links,
        place: &Arc<Place>,
        max: usize,
    ) -> Result<Vec<Delivery<RedisReceipt>>, RedisError> {
        if self.ready.is_empty() {
            self.read(links, place, max.max(1)).await?;
        }
        let number = max.min(self.ready.len());
        Ok(self.ready.drain(..number).collect())
    }

    async fn read(&mut self, links: &Links, place: &Arc<Place>, max: usize) -> Result<(), RedisError> {
        let Self { fetch, cursor, claimed, .. } = self;
        let fetch = fetch.get_or_insert_with(|| {
            let is_due = claimed.is_none_or(|at| at.elapsed() >= CLAIM) || cursor != BEGINNING;
            let cursor = is_due.then(|| cursor.clone());
            fetch_entries(links.clone(), Arc::clone(place), max, cursor).boxed()
        });
        let fetched = fetch.await;
        self.fetch = None;
        let Fetched { entries, cursor } = fetched?;
        if let Some(cursor) = cursor {
            self.cursor = cursor;
            self.claimed = Some(clock::monotonic());
        }
        self.ready.extend(entries);
        Ok(())
    }

    /// Forgets a call on a connection that is gone. What it read comes again when the lease ends.
    pub(super) fn interrupt(&mut self) {
        self.fetch = None;
    }

    /// Ends a call that is under way, and returns everything that was not handed out.
    pub(super) async fn finish(&mut self, links: &Links, place: &Arc<Place>) -> Vec<Delivery<RedisReceipt>> {
        if self.fetch.is_some() {
            drop(self.read(links, place, 1).await);
        }
        self.ready.drain(..).collect()
    }
}

async fn fetch_entries(
    mut links: Links,
    place: Arc<Place>,
    max: usize,
    mut cursor: Option<String>,
) -> Result<Fetched, RedisError> {
    let mut is_at_the_end = true;
    if let Some(cursor) = &mut cursor {
        let mut claim = scripts::CLAIM.key(&place.stream);
        claim.arg(&place.group).arg(&place.consumer).arg(as_millis(place.lease)).arg(&*cursor).arg(max);
        let claimed: (String, Vec<(String, u32, Fields)>, Vec<String>) = claim.invoke_async(&mut links.reads).await?;
        *cursor = claimed.0;
        is_at_the_end = cursor == BEGINNING;
        for entry in claimed.2 {
            telemetry::trimmed_unsettled(&place.source(), &entry);
        }
        if !claimed.1.is_empty() {
            let entries = claimed.1.into_iter();
            let entries = entries.map(|(id, deliveries, fields)| delivery(&place, id, deliveries, fields)).collect();
            return Ok(Fetched { entries, cursor: Some(cursor.clone()) });
        }
    }
    let mut read = cmd("XREADGROUP");
    read.arg("GROUP").arg(&place.group).arg(&place.consumer).arg("COUNT").arg(max);
    if is_at_the_end {
        read.arg("BLOCK").arg(as_millis(BLOCK));
    }
    let streams: Option<Vec<(String, Entries)>> =
        read.arg("STREAMS").arg(&place.stream).arg(">").query_async(&mut links.reads).await?;
    let entries = streams.into_iter().flatten().flat_map(|(_, entries)| entries);
    let entries = entries.map(|(id, fields)| delivery(&place, id, 1, fields)).collect();
    Ok(Fetched { entries, cursor })
}

/// The first field with the body's name is the body; the others that are text are headers.
fn delivery(place: &Place, id: String, deliveries: u32, fields: Fields) -> Delivery<RedisReceipt> {
    let mut message = Incoming::default();
    let mut body = None;
    let mut fields = fields.into_iter();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        if name == place.body_field.as_bytes() && body.is_none() {
            body = Some(value);
        } else if let (Ok(name), Ok(value)) = (String::from_utf8(name), String::from_utf8(value)) {
            message.headers.insert(name, value);
        }
    }
    let has_body = body.is_some();
    message.body = body.unwrap_or_default();
    Delivery::new(message, deliveries, RedisReceipt { id, deliveries, has_body })
}
