//! `"7d"` to whole seconds. The runtime has the same rules for configuration files (`idem_runtime::Retention`); the
//! table in `tests/src/durations.rs` holds the two together.

const UNITS: [(&str, u64); 5] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 604_800)];

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
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let unit_len = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_len);
        if number.is_empty() {
            return Err("does not begin with a whole, positive number".to_owned());
        }
        if unit.is_empty() {
            return Err("has no unit".to_owned());
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("has the unknown unit `{unit}`"));
        };
        let number: Option<u64> = number.parse().ok();
        total = number
            .and_then(|number| number.checked_mul(*scale))
            .and_then(|secs| total.checked_add(secs))
            .filter(|secs| *secs <= MAX_SECS)
            .ok_or_else(|| "is longer than a hundred years".to_owned())?;
        rest = tail;
    }
    if total == 0 { Err("is no time at all".to_owned()) } else { Ok(total) }
}
