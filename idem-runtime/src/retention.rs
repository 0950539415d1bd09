//! How long keys are kept.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long the keys of a handler are kept, in whole seconds: longer than the longest time after which an event may be
/// delivered again.
///
/// ```
/// use idem_runtime::Retention;
///
/// const WINDOW: Retention = Retention::days(7);
/// assert_eq!("7d".parse(), Ok(WINDOW));
/// assert_eq!(WINDOW.to_string(), "7d");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Retention {
    secs: u64,
}

/// A hundred years: every store can subtract it from today and still have a date.
const MAX_SECS: u64 = 100 * 366 * 24 * 60 * 60;

const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl Retention {
    /// So many days.
    ///
    /// # Panics
    ///
    /// When `days` is zero or more than a hundred years; in a constant that is a compile error.
    #[must_use]
    pub const fn days(days: u64) -> Self {
        Self::seconds(days.saturating_mul(86_400))
    }

    /// So many hours.
    ///
    /// # Panics
    ///
    /// When `hours` is zero or more than a hundred years; in a constant that is a compile error.
    #[must_use]
    pub const fn hours(hours: u64) -> Self {
        Self::seconds(hours.saturating_mul(3_600))
    }

    /// So many seconds.
    ///
    /// # Panics
    ///
    /// When `secs` is zero or more than a hundred years; in a constant that is a compile error.
    #[must_use]
    pub const fn seconds(secs: u64) -> Self {
        assert!(secs > 0, "a retention of zero keeps no key at all");
        assert!(secs <= MAX_SECS, "a retention is at most a hundred years");
        Self { secs }
    }

    /// The retention in seconds.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.secs
    }

    /// The retention as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_secs(self.secs)
    }
}

impl fmt::Display for Retention {
    /// Writes the largest units that fit, as the attribute takes them: `7d`, `1d12h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.secs;
        // Weeks are read but not written: people say 14 days.
        for (unit, secs) in &UNITS[1..] {
            if rest >= *secs {
                write!(f, "{}{unit}", rest / secs)?;
                rest %= secs;
            }
        }
        Ok(())
    }
}

impl FromStr for Retention {
    type Err = RetentionError;

    /// Reads what the attribute reads: whole numbers with the units `s`, `m`, `h`, `d` or `w`, as in `7d` or `1d12h`.
    fn from_str(text: &str) -> Result<Self, RetentionError> {
        let mut total = 0_u64;
        let mut rest = text;
        if rest.is_empty() {
            return Err(RetentionError::Empty);
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let unit_len = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(unit_len);
            if number.is_empty() {
                return Err(RetentionError::NotANumber);
            }
            if unit.is_empty() {
                return Err(RetentionError::NoUnit);
            }
            let scale = UNITS
                .iter()
                .find(|(name, _)| unit.chars().eq([*name]))
                .map(|(_, secs)| *secs)
                .ok_or(RetentionError::UnknownUnit)?;
            let number: u64 = number.parse().map_err(|_| RetentionError::TooLong)?;
            total = number.checked_mul(scale).and_then(|n| total.checked_add(n)).ok_or(RetentionError::TooLong)?;
            rest = tail;
        }
        match total {
            0 => Err(RetentionError::Zero),
            1..=MAX_SECS => Ok(Self { secs: total }),
            _ => Err(RetentionError::TooLong),
        }
    }
}

/// Why a text is no [`Retention`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// No text at all.
    #[error("a retention cannot be empty; write a number with a unit, such as `7d`")]
    Empty,
    /// Something other than a whole, positive number stands where a number belongs.
    #[error("a retention is a whole number with a unit, such as `7d`")]
    NotANumber,
    /// A number without a unit.
    #[error("a retention needs a unit: `s`, `m`, `h`, `d` or `w`")]
    NoUnit,
    /// A unit other than `s`, `m`, `h`, `d` or `w`. Months and years have no fixed length.
    #[error("unknown unit: a retention takes `s`, `m`, `h`, `d` or `w` (months have no fixed length)")]
    UnknownUnit,
    /// No time at all.
    #[error("a retention of zero keeps no key at all")]
    Zero,
    /// More than a hundred years.
    #[error("a retention is at most a hundred years")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::Retention;

    /// The same table as in `idem-macros`, whose parser must agree.
    #[test]
    fn the_shared_table_of_durations_holds() {
        for row in include_str!("../../tests/data/durations.txt").lines().filter(|row| !row.starts_with('#')) {
            let (text, expected) = row.split_once(" => ").unwrap();
            assert_eq!(text.parse().ok().map(Retention::as_secs), expected.parse().ok(), "{row}");
        }
    }
}
