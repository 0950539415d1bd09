//! How far one partition is settled. It knows offsets and no broker.

use std::collections::BTreeSet;

/// The offsets of a partition, from its assignment to its end. [B46]
#[derive(Debug, Default)]
pub(super) struct Tracker {
    /// Behind the last record that was received.
    next: Option<i64>,
    /// Received and not settled.
    open: BTreeSet<i64>,
    /// Those of them that a consumer holds.
    handed: BTreeSet<i64>,
    /// What the broker has taken.
    committed: Option<i64>,
}

impl Tracker {
    /// Says whether the record is new here.
    pub(super) fn received(&mut self, offset: i64) -> bool {
        self.next = self.next.max(Some(offset.saturating_add(1)));
        self.open.insert(offset)
    }

    pub(super) fn handed_out(&mut self, offset: i64) {
        self.handed.insert(offset);
    }

    /// It is not settled, and comes again.
    pub(super) fn put_back(&mut self, offset: i64) -> bool {
        self.handed.remove(&offset)
    }

    pub(super) fn settled(&mut self, offset: i64) -> bool {
        self.handed.remove(&offset) && self.open.remove(&offset)
    }

    /// What was settled was not done, after all.
    pub(super) fn reopened(&mut self, offset: i64) {
        self.open.insert(offset);
    }

    /// The client has passed so far, and nothing was between what was received and that: marks of transactions.
    pub(super) fn skipped_to(&mut self, position: i64) {
        if self.next.is_some_and(|next| next < position) {
            self.next = Some(position);
        }
    }

    /// Everything before this is settled.
    pub(super) fn position(&self) -> Option<i64> {
        self.open.first().copied().or(self.next)
    }

    /// What the broker should be told.
    pub(super) fn uncommitted(&self) -> Option<i64> {
        self.position().filter(|position| self.committed != Some(*position))
    }

    pub(super) fn committed(&mut self, position: i64) {
        self.committed = Some(position);
    }

    pub(super) fn is_committed_behind(&self, offset: i64) -> bool {
        self.committed > Some(offset)
    }

    pub(super) fn is_handed(&self, offset: i64) -> bool {
        self.handed.contains(&offset)
    }

    pub(super) fn is_first(&self, offset: i64) -> bool {
        self.open.first() == Some(&offset)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.handed.len()
    }

    /// How far the newest record is ahead of what is settled: what comes again after a crash, at most.
    pub(super) fn ahead(&self) -> i64 {
        self.next.zip(self.position()).map_or(0, |(next, position)| next.saturating_sub(position))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(offsets: impl IntoIterator<Item = i64>) -> Tracker {
        let mut tracker = Tracker::default();
        for offset in offsets {
            assert!(tracker.received(offset));
            tracker.handed_out(offset);
        }
        tracker
    }

    #[test]
    fn the_position_never_passes_what_failed_or_is_slow() {
        let mut tracker = of(1..=5);
        for settled in [1, 4, 5] {
            assert!(tracker.settled(settled));
        }
        assert_eq!((tracker.position(), tracker.uncommitted(), tracker.in_flight()), (Some(2), Some(2), 2));
        tracker.committed(2);
        assert!(tracker.put_back(2) && tracker.settled(3));
        assert_eq!((tracker.position(), tracker.uncommitted(), tracker.ahead()), (Some(2), None, 4));
        tracker.handed_out(2);
        assert!(tracker.settled(2));
        assert_eq!((tracker.position(), tracker.uncommitted(), tracker.ahead()), (Some(6), Some(6), 0));
    }

    #[test]
    fn what_was_not_handed_out_is_not_settled() {
        let mut tracker = Tracker::default();
        assert_eq!((tracker.position(), tracker.uncommitted()), (None, None));
        assert!(tracker.received(7) && !tracker.received(7));
        assert!(!tracker.settled(7));
        tracker.handed_out(7);
        assert!(tracker.settled(7) && !tracker.settled(7));
    }

    #[test]
    fn gaps_and_marks_at_the_end_are_passed_over() {
        let mut tracker = of([3, 9]);
        tracker.settled(3);
        assert_eq!(tracker.position(), Some(9));
        tracker.skipped_to(12);
        assert_eq!(tracker.position(), Some(9));
        tracker.settled(9);
        assert_eq!(tracker.position(), Some(12));
        tracker.skipped_to(4);
        assert_eq!(tracker.position(), Some(12));
    }

    #[test]
    fn a_log_that_was_cut_is_read_again() {
        let mut tracker = of(5..=6);
        tracker.settled(5);
        tracker.settled(6);
        tracker.committed(7);
        assert!(tracker.received(2));
        assert_eq!(tracker.uncommitted(), Some(2));
    }

    #[test]
    fn what_was_not_confirmed_is_open_again() {
        let mut tracker = of(0..=1);
        tracker.settled(0);
        assert!(!tracker.is_committed_behind(0));
        tracker.reopened(0);
        assert_eq!((tracker.position(), tracker.is_first(0)), (Some(0), true));
    }

    proptest! {
        /// Whatever the order in which they are settled, the position is the smallest that is not.
        #[test]
        fn the_position_is_the_smallest_unsettled(order in Just((0..40_i64).collect::<Vec<_>>()).prop_shuffle(), many in 0..40_usize) {
            let mut tracker = of(0..40);
            let (settled, left) = order.split_at(many);
            for offset in settled {
                prop_assert!(tracker.settled(*offset));
            }
            prop_assert_eq!(tracker.position(), Some(left.iter().copied().min().unwrap_or(40)));
        }
    }
}
