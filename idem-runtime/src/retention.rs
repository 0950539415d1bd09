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

    /// Reads what the attribute reads: whole numbers with the units `s`, `m`, `h`, `d` or `w`, as in `7d` or `1d12h`.
    /// The same as [`FromStr`], for constants.
    ///
    /// # Errors
    ///
    /// [`RetentionError`] when the text is no such number, no time at all, or more than a hundred years.
    pub const fn parse(text: &str) -> Result<Self, RetentionError> {
        let text = text.as_bytes();
        if text.is_empty() {
            return Err(RetentionError::Empty);
        }
        let (mut total, mut number, mut index) = (0_u64, None, 0);
        while index < text.len() {
            let byte = text[index];
            index += 1;
            if byte.is_ascii_digit() {
                number = Some(number_before(number).saturating_mul(10).saturating_add((byte - b'0') as u64));
                continue;
            }
            let Some(count) = number.take() else {
                return Err(RetentionError::NotANumber);
            };
            let unit_ends = index == text.len() || text[index].is_ascii_digit();
            let (Some(scale), true) = (scale(byte), unit_ends) else {
                return Err(RetentionError::UnknownUnit);
            };
            total = total.saturating_add(u64::saturating_mul(count, scale));
        }
        match (number, total) {
            (Some(_), _) => Err(RetentionError::NoUnit),
            (None, 0) => Err(RetentionError::Zero),
            (None, secs) if secs > MAX_SECS => Err(RetentionError::TooLong),
            (None, secs) => Ok(Self { secs }),
        }
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

    fn from_str(text: &str) -> Result<Self, RetentionError> {
        Self::parse(text)
    }
}

const fn number_before(digits: Option<u64>) -> u64 {
    match digits {
        Some(number) => number,
        None => 0,
    }
}

/// The seconds in a unit.
const fn scale(unit: u8) -> Option<u64> {
    let mut index = 0;
    while index < UNITS.len() {
        if UNITS[index].0 as u32 == unit as u32 {
            return Some(UNITS[index].1);
        }
        index += 1;
    }
    None
}

/// Why a text is no [`Retention`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub enum RetentionError {
    /// No text at all.
    Empty,
    /// Something other than a whole, positive number stands where a number belongs.
    NotANumber,
    /// A number without a unit.
    NoUnit,
    /// A unit other than `s`, `m`, `h`, `d` or `w`. Months and years have no fixed length.
    UnknownUnit,
    /// No time at all.
    Zero,
    /// More than a hundred years.
    TooLong,
}

impl RetentionError {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Empty => "a retention cannot be empty; write a number with a unit, such as `7d`",
            Self::NotANumber => "a retention is a whole number with a unit, such as `7d`",
            Self::NoUnit => "a retention needs a unit: `s`, `m`, `h`, `d` or `w`",
            Self::UnknownUnit => {
                "unknown unit: a retention takes `s`, `m`, `h`, `d` or `w` (months have no fixed length)"
            }
            Self::Zero => "a retention of zero keeps no key at all",
            Self::TooLong => "a retention is at most a hundred years",
        }
    }
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
