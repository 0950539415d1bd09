//! The thread that commits. There is one at a time, so that none overtakes another, and few: an offset that is committed late
//! costs a duplicate after a crash.

use std::sync::MutexGuard;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};
use tokio::time::Instant;

use super::context::Context;
use super::session::{Session, State};
use super::shelf::Place;
use super::{Kafka, fault};
use crate::adapter::{Adapter, AdapterError};
use crate::clock::monotonic;
use crate::telemetry;

/// How often offsets are committed under load.
const PACE: Duration = Duration::from_millis(500);

/// The same while nothing is in flight.
const IDLE_PACE: Duration = Duration::from_millis(20);

/// The pause after a commit that failed.
const AGAIN: Duration = Duration::from_millis(200);

pub(super) fn run(session: &Session, consumer: &BaseConsumer<Context>, source: &str) {
    let mut last: Option<(Instant, bool)> = None;
    let mut state = session.lock();
    while !state.is_over {
        // The thread that polls hears of it later than the client knows it: nothing is committed for what another member has.
        let pause = if consumer.assignment_lost() { Some(AGAIN) } else { pause(&state, last) };
        if let Some(pause) = pause {
            state = session.wait(state, pause);
            continue;
        }
        let positions = state.shelf.uncommitted();
        drop(state);
        let committed = commit(consumer, &positions);
        state = session.lock();
        last = Some((monotonic(), committed.is_ok()));
        match committed {
            Ok(()) => state.shelf.committed(&positions),
            Err(error) => state = failed(session, state, source, error),
        }
        session.wake_commit_waiters();
    }
}

/// How long to wait before the next commit; `None` for not at all.
fn pause(state: &MutexGuard<'_, State>, last: Option<(Instant, bool)>) -> Option<Duration> {
    if state.shelf.uncommitted().is_empty() {
        return Some(PACE);
    }
    let is_hurried = state.urgent > 0 || state.shelf.is_leaving_uncommitted();
    let pace = match last {
        None => return None,
        Some((_, false)) => AGAIN,
        Some(_) if is_hurried => return None,
        Some(_) if state.shelf.in_flight() == 0 => IDLE_PACE,
        Some(_) => PACE,
    };
    let passed = last.map_or(pace, |(last, _)| last.elapsed());
    (passed < pace).then(|| pace.saturating_sub(passed).max(Duration::from_millis(1)))
}

/// Waits for the broker's word, on its own queue: not for a poll.
fn commit(consumer: &BaseConsumer<Context>, positions: &[(Place, u64, i64)]) -> Result<(), KafkaError> {
    let mut list = TopicPartitionList::new();
    for ((topic, partition), _, position) in positions {
        list.add_partition_offset(topic, *partition, Offset::Offset(*position))?;
    }
    consumer.commit(&list, CommitMode::Sync)
}

fn failed<'a>(
    session: &'a Session,
    state: MutexGuard<'a, State>,
    source: &str,
    error: KafkaError,
) -> MutexGuard<'a, State> {
    let code = error.rdkafka_error_code();
    let is_rebalance = matches!(
        code,
        Some(
            RDKafkaErrorCode::RebalanceInProgress
                | RDKafkaErrorCode::IllegalGeneration
                | RDKafkaErrorCode::UnknownMemberId
        )
    );
    if is_rebalance {
        return state;
    }
    drop(state);
    match code.and_then(|code| fault(code).map(|fault| (fault, code))) {
        Some((fault, code)) => session.failed(fault, super::says(code)),
        None => {
            let error = AdapterError::unreachable("the offsets were not committed, and are again").because(error);
            telemetry::not_settled(Kafka::BROKER, source, "commit", &error);
        }
    }
    session.lock()
}
