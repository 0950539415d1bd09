//! Acknowledgements that come together are sent together: AWS bills requests, and ten entries are one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::super::AdapterError;
use super::fault::{ANSWER, answered, coded};

/// As many entries SQS takes in one request.
const ENTRIES: usize = 10;

const WHAT: &str = "the message was not deleted";

/// Deletes messages. While a request is under way others gather for the next; ten of them do not wait.
#[derive(Debug)]
pub(super) struct Deletes {
    line: Arc<Line>,
    /// The requests under way. Dropped with the adapter.
    requests: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Line {
    client: Client,
    url: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Entry>,
    /// How many requests are under way.
    sending: usize,
}

#[derive(Debug)]
struct Entry {
    handle: String,
    told: oneshot::Sender<Result<(), AdapterError>>,
}

impl Deletes {
    pub(super) fn new(client: Client, url: String) -> Self {
        let line = Line { client, url, state: Mutex::default() };
        Self { line: Arc::new(line), requests: Mutex::default() }
    }

    /// Deletes one, and returns what SQS said of this one.
    pub(super) async fn delete(&self, handle: &str) -> Result<(), AdapterError> {
        let (told, answer) = oneshot::channel();
        if let Some(first) = self.line.join(Entry { handle: handle.to_owned(), told }) {
            let line = Arc::clone(&self.line);
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            while requests.try_join_next().is_some() {}
            requests.spawn(async move {
                let mut next = Some(first);
                while let Some(entries) = next {
                    line.send(entries).await;
                    next = line.next();
                }
            });
        }
        // Without an answer when the connection was closed under it.
        answer.await.unwrap_or_else(|_| Err(AdapterError::unreachable(WHAT)))
    }

    /// Waits for the requests under way.
    pub(super) async fn end(&self) {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner));
        // Each ends by itself, since it waits for an answer no longer than `ANSWER`.
        while requests.join_next().await.is_some() {}
    }
}

impl Line {
    /// Waits in the line. Returns what is to be sent now, if this one makes it so.
    fn join(&self, entry: Entry) -> Option<Vec<Entry>> {
        let mut state = self.state();
        state.waiting.push(entry);
        let is_time = state.sending == 0 || state.waiting.len() >= ENTRIES;
        is_time.then(|| {
            state.sending += 1;
            std::mem::take(&mut state.waiting)
        })
    }

    /// What gathered while a request was under way.
    fn next(&self) -> Option<Vec<Entry>> {
        let mut state = self.state();
        if state.waiting.is_empty() {
            state.sending -= 1;
            return None;
        }
        Some(std::mem::take(&mut state.waiting))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, entries: Vec<Entry>) {
        let mut said = self.ask(&entries).await;
        for (place, entry) in entries.into_iter().enumerate() {
            let answer = match &mut said {
                Ok(said) => said.remove(&place.to_string()).unwrap_or_else(|| {
                    Err(AdapterError::unreachable(format!("{WHAT}: SQS did not say what became of it")))
                }),
                Err(error) => Err(AdapterError { fault: error.fault, text: error.with_causes(), source: None }),
            };
            // Whoever asked may be gone.
            drop(entry.told.send(answer));
        }
    }

    /// What SQS says of each entry, by its place: one can fail alone.
    async fn ask(&self, entries: &[Entry]) -> Result<HashMap<String, Result<(), AdapterError>>, AdapterError> {
        let mut request = self.client.delete_message_batch().queue_url(&self.url);
        for (place, entry) in entries.iter().enumerate() {
            let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string()).receipt_handle(&entry.handle);
            request = request.entries(entry.build().map_err(|error| AdapterError::refused(WHAT).because(error))?);
        }
        let said = answered(WHAT, ANSWER, request.send()).await?;
        let deleted = said.successful.into_iter().map(|entry| (entry.id, Ok(())));
        let failed = said.failed.into_iter();
        let failed = failed.map(|entry| (entry.id, Err(coded(WHAT, Some(&entry.code), entry.message.as_deref()))));
        Ok(deleted.chain(failed).collect())
    }
}
