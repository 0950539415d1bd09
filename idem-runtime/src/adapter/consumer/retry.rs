//! When a failed delivery is tried again, and when no more. Pure arithmetic.

use std::time::Duration;

/// How often and when a failed delivery is tried again. The default: 10 attempts, a second after the first, twice as long
/// after each further one, and five minutes at most; about nine minutes in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a consumer has it by `Consumer::retry`"]
pub struct RetryPolicy {
    attempts: u32,
    first: Duration,
    longest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 10, first: Duration::from_secs(1), longest: Duration::from_secs(300) }
    }
}

impl RetryPolicy {
    /// How often a delivery is tried, all in all, before it is dead-lettered. Default: 10; `0` is taken as 1.
    ///
    /// What is no fault of the event does not count: a database that cannot be reached is tried for ever.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The pause after the first attempt. Default: 1 second; at least a millisecond.
    pub fn first(mut self, pause: Duration) -> Self {
        self.first = pause.max(Duration::from_millis(1));
        self
    }

    /// The longest pause. Default: 5 minutes.
    pub fn longest(mut self, pause: Duration) -> Self {
        self.longest = pause;
        self
    }

    /// How long to wait after this attempt; `None` when it was the last. `random` spreads those that failed together over
    /// the upper half of the time.
    pub(super) fn after(&self, attempt: u32, random: u64) -> Option<Duration> {
        (attempt < self.attempts).then(|| jittered(self.pause(attempt), random))
    }

    /// How long to wait where the attempt was no fault of the event.
    pub(super) fn again(&self, failures: u32, random: u64) -> Duration {
        jittered(self.pause(failures).min(Duration::from_secs(30)), random)
    }

    fn pause(&self, attempt: u32) -> Duration {
        let doubled = 2_u32.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

fn jittered(pause: Duration, random: u64) -> Duration {
    let half = pause / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
    half + Duration::from_nanos(random % nanos.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_end() {
        let policy = RetryPolicy::default().attempts(4).longest(Duration::from_secs(3));
        let longest = |attempt| policy.after(attempt, u64::MAX).map(|pause| pause.as_secs_f64().round());
        assert_eq!(
            [1, 2, 3, 4].map(longest),
            [Some(1.0), Some(2.0), Some(3.0), None].map(|it| it.map(|secs| {
                // The random part of the largest number.
                let half = Duration::from_secs_f64(secs) / 2;
                (half + Duration::from_nanos(u64::MAX % u64::try_from(half.as_nanos()).unwrap())).as_secs_f64().round()
            }))
        );
        assert!(policy.after(1, 0).unwrap() >= Duration::from_millis(500));
        assert!(policy.after(u32::MAX, 0).is_none());
        assert_eq!(RetryPolicy::default().pause(u32::MAX), Duration::from_secs(300));
        assert!(RetryPolicy::default().again(40, 7) <= Duration::from_secs(30));
    }
}
