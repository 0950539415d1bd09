//! What the broker has assigned: records that wait, records in flight, and how far each partition is settled. Pure.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::tracker::Tracker;
use super::{KafkaReceipt, Record};

/// As many records, or bytes, of a partition wait here for room.
const WAITING: usize = 64;
const WAITING_BYTES: usize = 4 << 20;

/// As many of one order are handed out; the others would only take the room of those that need not wait.
const OF_ONE_ORDER: u32 = 4;

/// As far may the newest record be ahead of what is settled.
const AHEAD: i64 = 10_000;

/// As many records in a partition are kept back for a later time before nothing but those is handed out.
const KEPT_BACK: usize = 64;

/// A topic and the number of a partition.
pub(super) type Place = (Arc<str>, i32);

#[derive(Debug, Default)]
pub(super) struct Partition {
    /// Told apart from an earlier assignment of the same partition.
    pub(super) generation: u64,
    pub(super) tracker: Tracker,
    waiting: VecDeque<Record>,
    waiting_bytes: usize,
    kept_back: Vec<(Instant, Record)>,
    of_order: HashMap<u64, u32>,
    pub(super) is_paused: bool,
    is_leaving: bool,
}

impl Partition {
    /// Whether no more records of it should come.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING || self.waiting_bytes >= WAITING_BYTES || self.is_far_ahead()
    }

    /// Whether records of it can come again.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() <= WAITING / 2 && self.waiting_bytes <= WAITING_BYTES / 2 && !self.is_far_ahead()
    }

    fn is_far_ahead(&self) -> bool {
        self.tracker.ahead() >= AHEAD || self.kept_back.len() >= KEPT_BACK
    }

    fn take(&mut self, now: Instant) -> Option<Record> {
        if self.is_leaving {
            return None;
        }
        let record = self.take_kept_back(now).or_else(|| self.take_waiting())?;
        if let Some(order) = record.order {
            *self.of_order.entry(order).or_default() += 1;
        }
        self.tracker.handed_out(record.receipt.offset);
        Some(record)
    }

    fn take_kept_back(&mut self, now: Instant) -> Option<Record> {
        let place = self.kept_back.iter().position(|(due, _)| *due <= now)?;
        Some(self.kept_back.remove(place).1)
    }

    fn take_waiting(&mut self) -> Option<Record> {
        if self.kept_back.len() >= KEPT_BACK {
            return None;
        }
        let of_order = &self.of_order;
        let may_go = |record: &Record| {
            record.order.is_none_or(|order| of_order.get(&order).is_none_or(|handed| *handed < OF_ONE_ORDER))
        };
        let place = self.waiting.iter().position(may_go)?;
        let record = self.waiting.remove(place)?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(record.message.body.len());
        Some(record)
    }

    fn came_back(&mut self, order: Option<u64>) {
        let Some(order) = order else { return };
        if let Some(handed) = self.of_order.get_mut(&order) {
            *handed = handed.saturating_sub(1);
            if *handed == 0 {
                self.of_order.remove(&order);
            }
        }
    }
}

/// All partitions that are assigned.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) partitions: BTreeMap<Place, Partition>,
    generations: u64,
    turn: usize,
}

impl Shelf {
    pub(super) fn assigned(&mut self, place: Place) {
        self.generations += 1;
        let generation = self.generations;
        self.partitions.insert(place, Partition { generation, ..Partition::default() });
    }

    /// From here on nothing of it is handed out.
    pub(super) fn leaving(&mut self, place: &Place) {
        if let Some(partition) = self.partitions.get_mut(place) {
            partition.is_leaving = true;
            partition.waiting.clear();
            partition.kept_back.clear();
        }
    }

    pub(super) fn lost(&mut self, place: &Place) {
        self.partitions.remove(place);
    }

    /// Which assignment of the partition a record of it comes by, if it is assigned.
    pub(super) fn generation(&self, place: &Place) -> Option<u64> {
        self.partitions.get(place).map(|partition| partition.generation)
    }

    /// Says whether its partition is full now.
    pub(super) fn received(&mut self, record: Record) -> bool {
        let Some(partition) = self.partitions.get_mut(&record.receipt.place) else { return false };
        if partition.is_leaving || !partition.tracker.received(record.receipt.offset) {
            return false;
        }
        partition.waiting_bytes += record.message.body.len();
        partition.waiting.push_back(record);
        partition.is_full()
    }

    /// At most `max` records, of one partition after the other.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Vec<Record> {
        let mut taken = Vec::new();
        let many = self.partitions.len();
        let mut idle = 0;
        while taken.len() < max && idle < many {
            self.turn = (self.turn + 1) % many;
            match self.partitions.values_mut().nth(self.turn).and_then(|partition| partition.take(now)) {
                Some(record) => {
                    taken.push(record);
                    idle = 0;
                }
                None => idle += 1,
            }
        }
        taken
    }

    /// When the next record that is kept back is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let kept_back = self.partitions.values().flat_map(|partition| &partition.kept_back);
        kept_back.map(|(due, _)| *due).min()
    }

    /// The partition, if the record still belongs to it.
    pub(super) fn held(&mut self, receipt: &KafkaReceipt) -> Option<&mut Partition> {
        let partition = self.partitions.get_mut(&receipt.place)?;
        let is_ours = partition.generation == receipt.generation && partition.tracker.is_handed(receipt.offset);
        is_ours.then_some(partition)
    }

    /// Says whether the record was still ours.
    pub(super) fn settled(&mut self, record: &Record) -> bool {
        let Some(partition) = self.held(&record.receipt) else { return false };
        partition.came_back(record.order);
        partition.tracker.settled(record.receipt.offset)
    }

    /// Keeps a record back that is not settled. Says whether it was still ours.
    pub(super) fn keep_back(&mut self, record: &Record, due: Instant) -> bool {
        let Some(partition) = self.held(&record.receipt) else { return false };
        partition.came_back(record.order);
        partition.tracker.put_back(record.receipt.offset);
        if !partition.is_leaving {
            partition.kept_back.push((due, record.clone()));
        }
        true
    }

    /// What was settled before it was confirmed, and is not confirmed: it comes again.
    pub(super) fn reopen(&mut self, record: &Record, due: Instant) {
        let KafkaReceipt { place, generation, offset, .. } = &record.receipt;
        let Some(partition) = self.partitions.get_mut(place).filter(|it| it.generation == *generation) else { return };
        partition.tracker.reopened(*offset);
        if !partition.is_leaving {
            partition.kept_back.push((due, record.clone()));
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.partitions.values().map(|partition| partition.tracker.in_flight()).sum()
    }

    pub(super) fn is_anything_leaving(&self) -> bool {
        self.partitions.values().any(|partition| partition.is_leaving)
    }

    /// Whether a partition that leaves has records in flight.
    pub(super) fn holds_up(&self) -> bool {
        self.partitions.values().any(|partition| partition.is_leaving && partition.tracker.in_flight() > 0)
    }

    /// What the broker should be told.
    pub(super) fn uncommitted(&self) -> Vec<(Place, u64, i64)> {
        let positions = self.partitions.iter().filter_map(|(place, partition)| {
            let position = partition.tracker.uncommitted()?;
            Some((place.clone(), partition.generation, position))
        });
        positions.collect()
    }

    pub(super) fn is_leaving_uncommitted(&self) -> bool {
        self.partitions.values().any(|partition| partition.is_leaving && partition.tracker.uncommitted().is_some())
    }

    pub(super) fn committed(&mut self, positions: &[(Place, u64, i64)]) {
        for (place, generation, position) in positions {
            if let Some(partition) = self.partitions.get_mut(place).filter(|it| it.generation == *generation) {
                partition.tracker.committed(*position);
            }
        }
    }
}

/// How long at most a record that is released is kept back: it is not settled, and holds its partition's offset up.
pub(super) fn due(now: Instant, after: Duration) -> Instant {
    now + after.min(Duration::from_secs(600))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::adapter::{Delivery, Incoming};

    fn place(partition: i32) -> Place {
        (Arc::from("events"), partition)
    }

    fn shelf(partitions: i32) -> Shelf {
        let mut shelf = Shelf::default();
        (0..partitions).for_each(|partition| shelf.assigned(place(partition)));
        shelf
    }

    fn record(shelf: &Shelf, partition: i32, offset: i64, order: Option<u64>) -> Record {
        let generation = shelf.generation(&place(partition)).unwrap_or(0);
        let receipt = KafkaReceipt { place: place(partition), offset, generation, original: Arc::default() };
        Delivery { order, ..Delivery::new(Incoming::new("body"), 1, receipt) }
    }

    fn fill(shelf: &mut Shelf, partition: i32, offsets: std::ops::Range<i64>) -> bool {
        let mut is_full = false;
        for offset in offsets {
            is_full = shelf.received(record(shelf, partition, offset, None));
        }
        is_full
    }

    fn now() -> Instant {
        crate::clock::monotonic()
    }

    #[test]
    fn partitions_take_turns() {
        let mut shelf = shelf(3);
        fill(&mut shelf, 0, 0..10);
        fill(&mut shelf, 2, 0..2);
        let taken: Vec<_> = shelf.take(6, now()).iter().map(|record| record.receipt.place.1).collect();
        assert_eq!(taken.iter().filter(|partition| **partition == 2).count(), 2);
        assert_eq!((taken.len(), shelf.in_flight()), (6, 6));
    }

    #[test]
    fn a_full_partition_says_so_and_has_room_again() {
        let mut shelf = shelf(1);
        assert!(!fill(&mut shelf, 0, 0..63));
        assert!(fill(&mut shelf, 0, 63..64));
        shelf.take(31, now());
        assert!(!shelf.partitions[&place(0)].is_full() && !shelf.partitions[&place(0)].has_room());
        shelf.take(1, now());
        assert!(shelf.partitions[&place(0)].has_room());
    }

    #[test]
    fn one_that_hangs_stops_its_partition_in_the_end() {
        let mut shelf = shelf(1);
        fill(&mut shelf, 0, 0..1);
        shelf.take(1, now());
        for offset in 1..AHEAD - 1 {
            fill(&mut shelf, 0, offset..offset + 1);
            let taken = shelf.take(1, now());
            assert!(shelf.settled(&taken[0]) && shelf.partitions[&place(0)].has_room(), "{offset}");
        }
        assert!(fill(&mut shelf, 0, AHEAD - 1..AHEAD) && !shelf.partitions[&place(0)].has_room());
    }

    #[test]
    fn no_order_takes_all_the_room() {
        let mut shelf = shelf(1);
        for offset in 0..10 {
            shelf.received(record(&shelf, 0, offset, Some(u64::from(offset == 9))));
        }
        let taken = shelf.take(10, now());
        let offsets: Vec<_> = taken.iter().map(|record| record.receipt.offset).collect();
        assert_eq!(offsets, [0, 1, 2, 3, 9]);
        assert!(shelf.settled(&taken[0]));
        assert_eq!(shelf.take(10, now())[0].receipt.offset, 4);
    }

    #[test]
    fn a_settlement_of_an_earlier_assignment_is_stale() {
        let mut shelf = shelf(1);
        fill(&mut shelf, 0, 0..3);
        let taken = shelf.take(3, now());
        assert!(shelf.settled(&taken[0]));
        shelf.leaving(&place(0));
        assert!(shelf.holds_up() && shelf.is_leaving_uncommitted() && shelf.settled(&taken[1]));
        let positions = shelf.uncommitted();
        assert_eq!(positions, [(place(0), 1, 2)]);
        shelf.lost(&place(0));
        assert!(!shelf.settled(&taken[2]));
        // The same partition again, with the same record: not what the earlier receipt means.
        shelf.assigned(place(0));
        fill(&mut shelf, 0, 2..3);
        assert_eq!(shelf.take(1, now()).len(), 1);
        assert!(!shelf.settled(&taken[2]) && !shelf.keep_back(&taken[2], now()));
        shelf.committed(&positions);
        assert_eq!(shelf.uncommitted(), [(place(0), 2, 2)]);
    }

    #[test]
    fn what_is_kept_back_comes_again_when_it_is_due_and_holds_the_offset_up() {
        let mut shelf = shelf(1);
        fill(&mut shelf, 0, 0..2);
        let taken = shelf.take(2, now());
        let due = now() + Duration::from_secs(60);
        assert!(shelf.keep_back(&taken[0], due) && shelf.settled(&taken[1]));
        assert_eq!((shelf.uncommitted()[0].2, shelf.next_due(), shelf.take(9, now()).len()), (0, Some(due), 0));
        assert_eq!(shelf.take(9, due)[0].receipt.offset, 0);
    }
}
