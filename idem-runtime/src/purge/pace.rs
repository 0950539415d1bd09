//! How large a batch is, and how long the pause behind it. Pure arithmetic.

use std::time::Duration;

/// The least that a statement deletes at once, however contended the table is.
const SMALLEST: u32 = 50;

/// A batch that takes as long holds its locks for too long: the next one is half as large.
const SLOW: Duration = Duration::from_millis(500);

/// The longest pause: well below the lease, which is renewed between two batches.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How often a batch that met a lock is tried again before its handler is left for the next pass.
const TRIES: u32 = 5;

/// The pace of one handler's purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    batch: u32,
    largest: u32,
    pause: Duration,
    setbacks: u32,
}

impl Pace {
    pub(super) fn new(largest: u32, pause: Duration) -> Self {
        Self { batch: largest, largest, pause, setbacks: 0 }
    }

    pub(super) fn batch(&self) -> u32 {
        self.batch
    }

    /// The pause after a batch that took so long: as long again, so that the purge takes at most half of what one
    /// connection can do, and never less than the configured one. After one that took less than half a second the next
    /// may be larger again.
    pub(super) fn after_batch(&mut self, took: Duration) -> Duration {
        self.setbacks = 0;
        if took < SLOW {
            self.batch = self.batch.saturating_mul(2).min(self.largest);
        } else {
            self.batch = (self.batch / 2).max(SMALLEST.min(self.largest));
        }
        self.pause.max(took).min(LONGEST_PAUSE)
    }

    /// The pause after a batch that met a lock: longer each time, and the next batch is half as large. `None` when it is
    /// time to give up.
    pub(super) fn after_setback(&mut self) -> Option<Duration> {
        self.setbacks += 1;
        self.batch = (self.batch / 2).max(SMALLEST.min(self.largest));
        let pause = self.pause.max(Duration::from_millis(50)).saturating_mul(2_u32.saturating_pow(self.setbacks));
        (self.setbacks < TRIES).then_some(pause.min(LONGEST_PAUSE))
    }
}

/// When to begin after a start: somewhere in the first tenth of the interval, so that nodes that start together do not
/// purge together.
pub(super) fn stagger(interval: Duration, random: u64) -> Duration {
    let tenth = u64::try_from((interval / 10).as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(random % tenth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setbacks_make_batches_small_and_pauses_long_and_success_undoes_it() {
        let mut pace = Pace::new(1000, Duration::from_millis(10));
        let pauses: Vec<_> = std::iter::from_fn(|| pace.after_setback()).map(|pause| pause.as_millis()).collect();
        assert_eq!((pauses, pace.batch()), (vec![100, 200, 400, 800], 50));
        assert_eq!(pace.after_batch(Duration::from_millis(1)), Duration::from_millis(10));
        assert_eq!((pace.after_batch(Duration::from_millis(400)), pace.batch()), (Duration::from_millis(400), 200));
        assert_eq!((pace.after_batch(Duration::from_secs(1)), pace.batch()), (Duration::from_secs(1), 100));
        assert_eq!(pace.after_batch(Duration::from_secs(35)), LONGEST_PAUSE);
        assert_eq!(pace.batch(), 50);
        assert!(pace.after_setback().is_some());
    }

    #[test]
    fn a_batch_of_one_stays_a_batch_of_one() {
        let mut pace = Pace::new(1, Duration::ZERO);
        pace.after_setback();
        assert_eq!(pace.batch(), 1);
        assert!(stagger(Duration::ZERO, 7).is_zero());
        assert!(stagger(Duration::from_secs(600), u64::MAX) < Duration::from_secs(60));
    }
}
