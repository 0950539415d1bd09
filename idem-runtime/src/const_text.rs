//! Text that a constant can panic with: the compiler shows it as its error.

/// As much as an error says; what goes beyond is cut.
const CAPACITY: usize = 400;

const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];

/// Text that is put together at compile time.
pub(crate) struct ConstText {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl ConstText {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; CAPACITY], len: 0 }
    }

    pub(crate) const fn push(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut index = 0;
        // Names and numbers here are ASCII, so that no character is cut in two.
        while index < text.len() && self.len < CAPACITY {
            self.bytes[self.len] = if text[index].is_ascii() { text[index] } else { b'?' };
            self.len += 1;
            index += 1;
        }
        self
    }

    /// Writes seconds as the attribute takes them.
    pub(crate) const fn push_secs(mut self, mut secs: u64) -> Self {
        let mut index = 0;
        while index < UNITS.len() {
            let (scale, unit) = UNITS[index];
            if secs >= scale {
                self = self.push_number(secs / scale).push(unit);
                secs %= scale;
            }
            index += 1;
        }
        self
    }

    const fn push_number(self, number: u64) -> Self {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let text = if number >= 10 { self.push_number(number / 10) } else { self };
        let mut digit = 0;
        let mut rest = number % 10;
        while rest > 0 {
            digit += 1;
            rest -= 1;
        }
        text.push(DIGITS[digit])
    }

    pub(crate) const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ConstText;

    #[test]
    fn lengths_read_as_they_are_written() {
        const TEXT: ConstText = ConstText::new().push("kept for ").push_secs(90_061).push(", not ").push_secs(604_800);
        assert_eq!(TEXT.as_str(), "kept for 1d1h1m1s, not 7d");
        assert_eq!(ConstText::new().push(&"x".repeat(500)).as_str().len(), super::CAPACITY);
    }
}
