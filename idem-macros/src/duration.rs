//! `"7d"` to whole seconds. The runtime has the same rules for configuration files (`idem_runtime::Retention`); the
//! table `tests/data/durations.txt` holds the two together.

use crate::diag::did_you_mean;

const UNITS: [(&str, u64); 5] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 604_800)];

/// How people spell the units out; each begins with its unit's letter.
const WORDS: [&str; 13] =
    ["sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "hour", "hours", "day", "days", "weeks"];

/// A hundred years.
const MAX_SECS: u64 = 100 * 366 * 24 * 60 * 60;

/// Reads whole numbers with units, as in `7d` or `1d12h`. The error is a sentence without the value.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let mut total = 0_u64;
    let mut rest = text;
    if rest.is_empty() {
        return Err("is empty".to_owned());
    }
    while !rest.is_empty() {
        let (number, unit, tail) = split(rest);
        if number.is_empty() {
            return Err("does not begin with a whole, positive number".to_owned());
        }
        let scale = scale(unit)?;
        let number: Option<u64> = number.parse().ok();
        total = number
            .and_then(|number| number.checked_mul(scale))
            .and_then(|secs| total.checked_add(secs))
            .filter(|secs| *secs <= MAX_SECS)
            .ok_or_else(|| "is longer than a hundred years".to_owned())?;
        rest = tail;
    }
    if total == 0 { Err("is no time at all".to_owned()) } else { Ok(total) }
}

/// What `7 days` was meant to be.
pub(crate) fn meant(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let mut meant = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (number, unit, tail) = split(rest);
        let is_unit = UNITS.iter().any(|(name, _)| *name == unit);
        let word = if is_unit { unit } else { did_you_mean(unit, WORDS)? };
        meant.push_str(number);
        meant.push(word.chars().next()?);
        rest = tail;
    }
    seconds(&meant).is_ok().then_some(meant)
}

/// The leading number, its unit, and what follows.
fn split(text: &str) -> (&str, &str, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, tail) = text.split_at(digits);
    let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
    (number, unit, tail)
}

/// Writes seconds as the attribute takes them, without weeks: people say 14 days.
pub(crate) fn text(mut secs: u64) -> String {
    let mut text = String::new();
    for (unit, scale) in UNITS.iter().rev().filter(|(unit, _)| *unit != "w") {
        if secs >= *scale {
            text.push_str(&format!("{}{unit}", secs / scale));
            secs %= scale;
        }
    }
    text
}

/// The first whole day that is longer.
pub(crate) fn next_day_after(secs: u64) -> u64 {
    (secs / 86_400 + 1) * 86_400
}

fn scale(unit: &str) -> Result<u64, String> {
    match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, scale)) => Ok(*scale),
        None if unit.is_empty() => Err("has no unit".to_owned()),
        None if unit.starts_with(['.', ',']) => Err("is no whole number".to_owned()),
        None if UNITS.iter().any(|(name, _)| *name == unit.trim()) => Err("contains a space".to_owned()),
        None => Err(format!("has the unknown unit `{}`", unit.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::{meant, seconds};

    /// The same table as in `idem_runtime::Retention`.
    #[test]
    fn the_shared_table_of_durations_holds() {
        let table = include_str!("../../tests/data/durations.txt");
        let mut rows = 0;
        for row in table.lines().filter(|row| !row.starts_with('#')) {
            let (text, expected) = row.split_once(" => ").unwrap();
            assert_eq!(seconds(text).ok(), expected.parse().ok(), "{row}");
            rows += 1;
        }
        assert!(rows > 20, "the table is nearly empty");
    }

    #[test]
    fn spelt_out_units_are_understood_and_months_are_not() {
        assert_eq!(meant("7 days").as_deref(), Some("7d"));
        assert_eq!(meant("7 dayz").as_deref(), Some("7d"));
        assert_eq!(meant("1 Day 12 hours").as_deref(), Some("1d12h"));
        for text in ["7", "", "1mo", "1 month", "1.5d", "-1d", "2 years"] {
            assert_eq!(meant(text), None, "{text}");
        }
    }
}
