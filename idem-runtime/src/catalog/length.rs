//! Lengths of time as people read them.

use std::time::Duration;

use crate::retention::Retention;

/// Seconds, as the attribute takes them: `7d`, `1d12h`. No time at all is `0s`.
pub(crate) fn exact(secs: u64) -> String {
    match Retention::parse(&format!("{secs}s")) {
        Ok(length) => length.to_string(),
        Err(_) if secs == 0 => "0s".to_owned(),
        // A sum of windows that are each a hundred years.
        Err(_) => format!("{}d", secs / 86_400),
    }
}

/// A measured time by its two largest units: nobody compares the seconds of a week.
pub(crate) fn about(duration: Duration) -> String {
    let secs = duration.as_secs();
    let coarse = match secs {
        0..3_600 => secs,
        3_600..86_400 => secs / 60 * 60,
        _ => secs / 3_600 * 3_600,
    };
    exact(coarse)
}

/// A number with its thousands set apart.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes, by the largest unit of which there is at least one.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut scaled, mut unit) = (bytes as f64, None);
    for name in UNITS {
        if scaled < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, Some(name));
    }
    unit.map_or_else(|| format!("{bytes} B"), |unit| format!("{scaled:.1} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_numbers_read_well() {
        assert_eq!([exact(0), exact(129_600), exact(604_800)], ["0s", "1d12h", "7d"]);
        assert_eq!(exact(u64::MAX), "213503982334601d");
        let about = |secs| about(Duration::from_secs(secs));
        assert_eq!([about(59), about(7_384), about(180_061)], ["59s", "2h3m", "2d2h"]);
        assert_eq!([number(7), number(999), number(1_000), number(12_345_678)], ["7", "999", "1,000", "12,345,678"]);
        assert_eq!([bytes(0), bytes(1_023), bytes(1_536), bytes(7 << 30)], ["0 B", "1023 B", "1.5 KiB", "7.0 GiB"]);
    }
}
