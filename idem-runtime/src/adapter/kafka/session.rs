//! One member of the group, from a connect to its end: what its two threads and the consumer share.
//!
//! `poll.rs` is the thread that polls and never does anything else, `commit.rs` the one that commits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::{AdapterError, AdapterFault};
use super::shelf::{Place, Shelf, due};
use super::{KafkaReceipt, Record};
use crate::clock::monotonic;

/// `receive` returns without a record after so long.
const QUIET: Duration = Duration::from_secs(5);

/// How long the acknowledgement that comes first waits for its turn and for the broker's word.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);

/// How long a record whose acknowledgement was not confirmed is kept back.
const NOT_CONFIRMED: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Session {
    state: Mutex<State>,
    /// Wakes the threads.
    changed: Condvar,
    /// Wakes `receive`.
    pub(super) arrived: Notify,
    /// Wakes who waits for a commit.
    told: Notify,
    /// How long the process may show no sign of life with records in its hands.
    max_silence: Duration,
    /// How long a partition that leaves waits for what is in flight.
    pub(super) hand_over: Duration,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) shelf: Shelf,
    pub(super) fault: Option<(AdapterFault, String)>,
    /// The consumer wants no more.
    pub(super) is_stopping: bool,
    /// Nothing is to be committed any more.
    pub(super) is_over: bool,
    /// As many wait for a commit.
    pub(super) urgent: u32,
    last_sign: Instant,
}

impl Session {
    pub(super) fn new(max_silence: Duration, hand_over: Duration) -> Self {
        let state = State {
            shelf: Shelf::default(),
            fault: None,
            is_stopping: false,
            is_over: false,
            urgent: 0,
            last_sign: monotonic(),
        };
        let (arrived, told) = (Notify::new(), Notify::new());
        Self { state: Mutex::new(state), changed: Condvar::new(), arrived, told, max_silence, hand_over }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, on one of the threads.
    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>, length: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, length).map_or_else(|error| error.into_inner().0, |(state, _)| state)
    }

    /// Waits while something holds, on one of the threads, and says whether it does not any more.
    pub(super) fn wait_while(&self, length: Duration, mut holds: impl FnMut(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), length, |state| holds(state));
        waited.is_ok_and(|(_, result)| !result.timed_out())
    }

    pub(super) fn wake_threads(&self) {
        self.changed.notify_all();
    }

    pub(super) fn wake_all(&self) {
        self.changed.notify_all();
        self.arrived.notify_waiters();
        self.arrived.notify_one();
        self.told.notify_waiters();
    }

    pub(super) fn wake_commit_waiters(&self) {
        self.changed.notify_all();
        self.told.notify_waiters();
    }

    pub(super) fn sign_of_life(&self) {
        self.lock().last_sign = monotonic();
    }

    /// Whether the process handles what it has been given, as far as can be seen.
    pub(super) fn is_alive(&self) -> bool {
        let state = self.lock();
        state.shelf.in_flight() == 0 || state.last_sign.elapsed() < self.max_silence
    }

    pub(super) fn failed(&self, fault: AdapterFault, text: String) {
        self.lock().fault.get_or_insert((fault, text));
        self.wake_all();
    }

    /// At most `max` records. Cancel safe: nothing is awaited with records in hand.
    pub(super) async fn receive(&self, max: usize) -> Result<Vec<Record>, AdapterError> {
        let until = monotonic() + QUIET;
        loop {
            let next_due = {
                let mut state = self.lock();
                let now = monotonic();
                state.last_sign = now;
                if let Some((fault, text)) = &state.fault {
                    return Err(match fault {
                        AdapterFault::Refused => AdapterError::refused(text.as_str()),
                        AdapterFault::Unreachable | AdapterFault::Stale => AdapterError::unreachable(text.as_str()),
                    });
                }
                let taken = if state.is_stopping { Vec::new() } else { state.shelf.take(max, now) };
                if !taken.is_empty() || now >= until {
                    drop(state);
                    self.wake_threads();
                    return Ok(taken);
                }
                state.shelf.next_due().map_or(until, |due| due.min(until))
            };
            tokio::select! {
                () = self.arrived.notified() => {}
                () = sleep_until(next_due) => {}
            }
        }
    }

    pub(super) fn holds(&self, receipt: &KafkaReceipt) -> bool {
        self.lock().shelf.held(receipt).is_some()
    }

    pub(super) fn settled(&self, record: &Record) -> Result<(), AdapterError> {
        let mut state = self.lock();
        let was_ours = state.shelf.settled(record);
        self.went_on(state, was_ours)
    }

    pub(super) fn keep_back(&self, record: &Record, after: Duration) -> Result<(), AdapterError> {
        let mut state = self.lock();
        let was_ours = state.shelf.keep_back(record, due(monotonic(), after));
        self.went_on(state, was_ours)
    }

    /// Wakes the threads if that can mean something to them; not for each of thousands.
    fn went_on(&self, mut state: MutexGuard<'_, State>, was_ours: bool) -> Result<(), AdapterError> {
        state.last_sign = monotonic();
        let is_news = state.shelf.in_flight() == 0 || state.shelf.is_anything_leaving();
        drop(state);
        if is_news {
            self.wake_threads();
        }
        // One of its order may be handed out now.
        self.arrived.notify_one();
        if was_ours { Ok(()) } else { Err(stale()) }
    }

    /// Settles a record, and returns when the broker has taken it. Everything before it in its partition is settled first.
    pub(super) async fn confirmed(&self, record: &Record) -> Result<(), AdapterError> {
        let _urgent = Urgent::begin(self);
        let receipt = &record.receipt;
        let is_first = self.until(|state| {
            state
                .shelf
                .held(receipt)
                .map_or(Some(Err(stale())), |partition| partition.tracker.is_first(receipt.offset).then_some(Ok(())))
        });
        let Some(is_first) = is_first.await else {
            self.keep_back(record, NOT_CONFIRMED)?;
            return Err(AdapterError::stale("a record before it in its partition is not settled yet"));
        };
        is_first?;
        self.settled(record)?;
        self.wake_threads();
        let is_committed = self.until(|state| {
            let ours = state.shelf.partitions.get(&receipt.place).filter(|it| it.generation == receipt.generation);
            ours.map_or(Some(Err(stale())), |partition| {
                partition.tracker.is_committed_behind(receipt.offset).then_some(Ok(()))
            })
        });
        is_committed.await.unwrap_or_else(|| {
            self.lock().shelf.reopen(record, due(monotonic(), NOT_CONFIRMED));
            Err(AdapterError::stale("the broker did not take the offset in time"))
        })
    }

    /// Waits for an answer, within bounds.
    async fn until<T>(&self, mut answer: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let wait = async {
            loop {
                let mut told = std::pin::pin!(self.told.notified());
                told.as_mut().enable();
                let found = answer(&mut self.lock());
                if let Some(found) = found {
                    return found;
                }
                // Not only what is told: an earlier record that is settled tells nobody.
                drop(timeout(Duration::from_millis(5), told).await);
            }
        };
        timeout(CONFIRMED_WITHIN, wait).await.ok()
    }

    /// A rebalance gives these to us.
    pub(super) fn assigned(&self, places: Vec<Place>) {
        let mut state = self.lock();
        places.into_iter().for_each(|place| state.shelf.assigned(place));
    }

    /// A rebalance takes these from us: lets what is in flight end and commits it, within bounds, while they are still ours.
    /// It runs on the thread that polls, and holds the rebalance up.
    pub(super) fn given_up(&self, places: &[Place], are_lost: bool) {
        let is_stopping = {
            let mut state = self.lock();
            places.iter().for_each(|place| state.shelf.leaving(place));
            state.is_stopping
        };
        if !are_lost {
            // At its end the consumer has settled what it could.
            if !is_stopping {
                self.wait_while(self.hand_over, |state| state.shelf.holds_up());
            }
            self.wake_threads();
            self.wait_while(self.hand_over, |state| state.shelf.is_leaving_uncommitted());
        }
        let mut state = self.lock();
        places.iter().for_each(|place| state.shelf.lost(place));
        drop(state);
        self.wake_all();
    }
}

/// Has the next commit made at once.
struct Urgent<'a>(&'a Session);

impl<'a> Urgent<'a> {
    fn begin(session: &'a Session) -> Self {
        session.lock().urgent += 1;
        Self(session)
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        self.0.lock().urgent -= 1;
    }
}

pub(super) fn stale() -> AdapterError {
    AdapterError::stale("the partition was given to another member of the group, which gets the record as well")
}
