//! The thread that polls. It goes on however slow the handlers are, so that the member is not taken for dead; where there is
//! no room it pauses partitions.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset, TopicPartitionList};
use tokio::time::Instant;

use super::context::Context;
use super::session::Session;
use super::shelf::Place;
use super::{KafkaReceipt, Ordering, Original, Record, fault};
use crate::adapter::{AdapterFault, Delivery, Incoming};
use crate::clock::monotonic;

/// How long a poll waits, and so how late the thread hears of anything but records.
const POLL: Duration = Duration::from_millis(100);

/// How long it waits for room before it pauses a partition, which drops what was fetched ahead.
const ROOM: Duration = Duration::from_millis(500);

/// How often it looks where the client stands.
const LOOK: Duration = Duration::from_millis(500);

/// How long leaving the group may take.
const LEAVING: Duration = Duration::from_secs(5);

pub(super) fn run(session: &Arc<Session>, consumer: &BaseConsumer<Context>, order: Ordering) {
    let mut looked = monotonic();
    while !session.lock().is_stopping {
        if !session.is_alive() {
            // Without polls the group gives our partitions to others in the end, which is what they need.
            session.wait_while(POLL, |state| !state.is_stopping);
            continue;
        }
        resume(session, consumer);
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                if let Some(place) = received(session, &message, order) {
                    make_room(session, consumer, &place);
                }
            }
            Some(Err(error)) => failed(session, &error),
            None => look(session, consumer, &mut looked),
        }
    }
    leave(session, consumer);
}

/// Takes a record in. Returns its partition if that is full now.
fn received(session: &Session, message: &BorrowedMessage<'_>, order: Ordering) -> Option<Place> {
    let mut state = session.lock();
    let place =
        state.shelf.partitions.keys().find(|place| place.1 == message.partition() && *place.0 == *message.topic());
    let place = place?.clone();
    let generation = state.shelf.generation(&place)?;
    let is_full = state.shelf.received(record(message, place.clone(), generation, order));
    drop(state);
    session.arrived.notify_one();
    is_full.then_some(place)
}

fn record(message: &BorrowedMessage<'_>, place: Place, generation: u64, order: Ordering) -> Record {
    let mut incoming = Incoming::new(message.payload().unwrap_or_default());
    for header in message.headers().into_iter().flat_map(Headers::iter) {
        if let Some(text) = header.value.and_then(|value| std::str::from_utf8(value).ok()) {
            incoming.headers.insert(header.key.to_owned(), text.to_owned());
        }
    }
    let order = order.of(&place, message.key());
    let headers = message.headers().map(rdkafka::message::BorrowedHeaders::detach);
    let original = Arc::new(Original { key: message.key().map(<[u8]>::to_vec), headers });
    let receipt = KafkaReceipt { place, offset: message.offset(), generation, original };
    let delivery = Delivery::new(incoming, 1, receipt);
    match order {
        Some(order) => delivery.in_order(order),
        None => delivery,
    }
}

/// Waits for room in a partition, and pauses it if none comes.
fn make_room(session: &Session, consumer: &BaseConsumer<Context>, place: &Place) {
    let has_room = session.wait_while(ROOM, |state| {
        !state.is_stopping && state.shelf.partitions.get(place).is_some_and(super::shelf::Partition::is_full)
    });
    if has_room {
        return;
    }
    // It fails for a partition that was lost meanwhile.
    if consumer.pause(&list(std::slice::from_ref(place))).is_ok()
        && let Some(partition) = session.lock().shelf.partitions.get_mut(place)
    {
        partition.is_paused = true;
    }
}

fn resume(session: &Session, consumer: &BaseConsumer<Context>) {
    let mut state = session.lock();
    let paused = state.shelf.partitions.iter_mut().filter(|(_, partition)| partition.is_paused && partition.has_room());
    let places: Vec<_> = paused
        .map(|(place, partition)| {
            partition.is_paused = false;
            place.clone()
        })
        .collect();
    drop(state);
    if !places.is_empty() && consumer.resume(&list(&places)).is_err() {
        let mut state = session.lock();
        for place in places {
            // Again at the next turn.
            if let Some(partition) = state.shelf.partitions.get_mut(&place) {
                partition.is_paused = true;
            }
        }
    }
}

/// Passes over what is no record, the marks of transactions, where the client has done so and has nothing left to give.
fn look(session: &Session, consumer: &BaseConsumer<Context>, looked: &mut Instant) {
    if looked.elapsed() < LOOK {
        return;
    }
    *looked = monotonic();
    let Ok(positions) = consumer.position() else { return };
    let mut state = session.lock();
    for element in positions.elements() {
        let place = (Arc::from(element.topic()), element.partition());
        if let (Offset::Offset(position), Some(partition)) = (element.offset(), state.shelf.partitions.get_mut(&place))
        {
            partition.tracker.skipped_to(position);
        }
    }
    drop(state);
    session.wake_threads();
}

fn failed(session: &Session, error: &KafkaError) {
    match error {
        KafkaError::MessageConsumptionFatal(code) => {
            let fault = fault(*code).unwrap_or(AdapterFault::Unreachable);
            session.failed(fault, super::says(*code));
        }
        // The client itself recovers from everything else.
        KafkaError::MessageConsumption(code) => {
            if let Some(fault) = fault(*code) {
                session.failed(fault, super::says(*code));
            }
        }
        _ => {}
    }
}

/// Gives the partitions up while they are still ours, and leaves the group.
fn leave(session: &Session, consumer: &BaseConsumer<Context>) {
    consumer.unsubscribe();
    let begun = monotonic();
    // What comes now is nobody's, and comes again.
    while !session.lock().shelf.partitions.is_empty() && begun.elapsed() < LEAVING {
        drop(consumer.poll(POLL));
    }
    let mut state = session.lock();
    state.shelf.partitions.clear();
    state.is_over = true;
    drop(state);
    session.wake_all();
}

pub(super) fn list(places: &[Place]) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (topic, partition) in places {
        list.add_partition(topic, *partition);
    }
    list
}
