//! The keys of this process that are being handled: a request with one of them need not go to the database to be told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::monotonic;
use crate::endpoint::InFlight;

/// For each key the signal of its end, which is that its sender is gone.
#[derive(Debug, Default)]
pub(super) struct Flights {
    keys: Mutex<HashMap<String, watch::Receiver<()>>>,
}

/// A key in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    flights: Arc<Flights>,
    key: String,
    _end: watch::Sender<()>,
}

impl Flights {
    /// Takes the key, as soon as it may. `None` if another request has it for longer than this one waits.
    ///
    /// Cancel safe: who waits holds nothing.
    pub(super) async fn take(self: &Arc<Self>, key: &str, policy: InFlight) -> Option<Flight> {
        let deadline: Option<Instant> = match policy {
            InFlight::Reject => None,
            InFlight::Wait(longest) => monotonic().checked_add(longest),
        };
        loop {
            let mut other = match self.try_take(key) {
                Ok(flight) => return Some(flight),
                Err(other) => other,
            };
            // It never changes: the only news is that its sender is gone.
            tokio::time::timeout_at(deadline?, other.changed()).await.err().map_or(Some(()), |_| None)?;
        }
    }

    fn try_take(self: &Arc<Self>, key: &str) -> Result<Flight, watch::Receiver<()>> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = keys.get(key) {
            return Err(other.clone());
        }
        let (end, ended) = watch::channel(());
        keys.insert(key.to_owned(), ended);
        Ok(Flight { flights: Arc::clone(self), key: key.to_owned(), _end: end })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
