//! Keys as people type them: part by part with its type, or copied from the table.

use std::fmt::Write as _;
use std::str::FromStr;

use uuid::Uuid;

use super::encode::Part;
use super::{Key, KeyPart};

/// A part of a key that owns its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    Text(String),
    Integer(i128),
    Large(u128),
    Bool(bool),
    Char(char),
    Uuid(Uuid),
    Bytes(Vec<u8>),
}

impl KeyPart for Typed {
    fn part(&self) -> Part<'_> {
        match self {
            Self::Text(value) => Part::Text(value),
            Self::Integer(value) => Part::Integer(*value),
            Self::Large(value) => Part::Large(*value),
            Self::Bool(value) => Part::Bool(*value),
            Self::Char(value) => Part::Char(*value),
            Self::Uuid(value) => Part::Uuid(*value),
            Self::Bytes(value) => Part::Bytes(value),
        }
    }
}

impl Typed {
    /// The value behind one of the format's letters; `None` when it is none of that type.
    fn of(letter: char, value: &str) -> Option<Self> {
        match letter {
            's' => Some(Self::Text(value.to_owned())),
            'i' => match value.parse() {
                Ok(number) => Some(Self::Integer(number)),
                Err(_) => value.parse().ok().map(Self::Large),
            },
            'b' => value.parse().ok().map(Self::Bool),
            'c' => value.parse().ok().map(Self::Char),
            'u' => Uuid::parse_str(value).ok().map(Self::Uuid),
            'x' => bytes(value).map(Self::Bytes),
            _ => None,
        }
    }
}

/// Text that begins with a letter of the format and a colon, and is no value of that type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no {wanted}; to mean the text itself, write `s:{given}`")]
pub(crate) struct NotTyped {
    given: String,
    wanted: &'static str,
}

impl FromStr for Typed {
    type Err = NotTyped;

    /// Text, unless a letter of the format and a colon stand before it. `s:` has any text taken as that.
    fn from_str(given: &str) -> Result<Self, NotTyped> {
        let wanted = match given.split_once(':').map(|(letter, _)| letter) {
            Some("s") => "text",
            Some("i") => "whole number",
            Some("b") => "`true` or `false`",
            Some("c") => "single character",
            Some("u") => "UUID",
            Some("x") => "hexadecimal number of whole bytes",
            _ => return Ok(Self::Text(given.to_owned())),
        };
        let letter = given.chars().next().unwrap_or_default();
        Self::of(letter, &given[2..]).ok_or_else(|| NotTyped { given: given.to_owned(), wanted })
    }
}

impl Key {
    /// The key that stands in the table as this text; `None` when no key does.
    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        if text.contains('~') {
            return is_cut(text).then(|| Self { stored: text.to_owned(), fingerprint: None, occurred_at: None });
        }
        let parts = text.strip_prefix("1/")?.split('/').map(stored_part).collect::<Option<Vec<Typed>>>()?;
        let key = Self::of_typed(&parts)?.ok()?;
        // Anything else that can be read, such as `i:007` or `%41`, is not how the encoding writes it.
        (key.as_str() == text).then_some(key)
    }

    /// The key of parts; `None` without any.
    pub(crate) fn of_typed(parts: &[Typed]) -> Option<Result<Self, super::KeyError>> {
        let (head, tail) = parts.split_first()?;
        let tail: Vec<&dyn KeyPart> = tail.iter().map(|part| part as &dyn KeyPart).collect();
        Some(Self::of(head, &tail))
    }
}

fn stored_part(text: &str) -> Option<Typed> {
    let mut chars = text.chars();
    let (letter, ':') = (chars.next()?, chars.next()?) else {
        return None;
    };
    Typed::of(letter, &unescaped(chars.as_str())?)
}

/// Whether the text is the beginning of a key and the digest of the whole.
fn is_cut(text: &str) -> bool {
    let Some((readable, digest)) = text.split_once('~') else {
        return false;
    };
    let is_plain = |byte: u8| matches!(byte, b' '..=b'}') && !matches!(byte, b'\'' | b'\\');
    readable.starts_with("1/")
        && (54..=56).contains(&readable.len())
        && readable.bytes().all(is_plain)
        && digest.len() == 64
        && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Undoes the `%XX`.
fn unescaped(text: &str) -> Option<String> {
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            found.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = behind;
        } else {
            found.push(byte);
        }
    }
    String::from_utf8(found).ok()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    // `from_str_radix` takes a sign.
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

/// What the text would have to be typed as to be another type's value: `7` as `i:7`. Several where several are possible.
pub(crate) fn other_readings(text: &str) -> String {
    let mut readings = String::new();
    for letter in ['i', 'b', 'u'] {
        if Typed::of(letter, text).is_some() {
            let between = if readings.is_empty() { "" } else { " or " };
            // Writing to a `String` cannot fail.
            let _ = write!(readings, "{between}`{letter}:{text}`");
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::byte_id;

    fn typed(text: &str) -> Typed {
        text.parse().unwrap()
    }

    #[test]
    fn a_letter_and_a_colon_give_the_type() {
        assert_eq!(typed("ord_1"), Typed::Text("ord_1".into()));
        assert_eq!(typed("7"), Typed::Text("7".into()));
        assert_eq!(typed("i:-7"), Typed::Integer(-7));
        assert_eq!(typed("i:340282366920938463463374607431768211455"), Typed::Large(u128::MAX));
        assert_eq!(typed("b:true"), Typed::Bool(true));
        assert_eq!(typed("c:é"), Typed::Char('é'));
        assert_eq!(typed("x:00fF"), Typed::Bytes(vec![0, 255]));
        assert_eq!(typed("s:i:7"), Typed::Text("i:7".into()));
        assert_eq!(typed("evt:1"), Typed::Text("evt:1".into()));
        assert_eq!(typed("a:1"), Typed::Text("a:1".into()));
        assert_eq!(typed(""), Typed::Text(String::new()));
        for wrong in ["i:seven", "i:", "b:yes", "c:ab", "c:", "x:0", "x:+1", "x:é", "u:1"] {
            let error = wrong.parse::<Typed>().unwrap_err().to_string();
            assert!(error.contains(&format!("write `s:{wrong}`")), "{error}");
        }
    }

    #[test]
    fn only_what_the_encoding_writes_is_a_stored_key() {
        for stored in ["1/s:ord_1/i:7", "1/u:67e55044-10b1-426f-9247-bb680e5fe0c8", "1/x:00ff/b:true/c:%C3%A9"] {
            assert_eq!(Key::from_stored(stored).unwrap().as_str(), stored);
        }
        for other in [
            "ord_1",
            "1",
            "1/",
            "2/s:a",
            "1/s:",
            "1/s:a/",
            "1/i:007",
            "1/i:+7",
            "1/s:%41",
            "1/s:%c3%a9",
            "1/s:é",
            "1/x:FF",
            "1/s:it's",
            "1/s:%",
            "1/s:%FF",
            "1/q:a",
            "1/s:a~",
            "1/b:TRUE",
            "1/u:00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(Key::from_stored(other), None, "{other}");
        }
    }

    #[test]
    fn a_key_that_was_cut_is_taken_as_it_is() {
        for text in ["x".repeat(300), format!("{}é{}", "x".repeat(49), "y".repeat(200))] {
            let key = Key::of(&text, &[]).unwrap();
            assert_eq!(Key::from_stored(key.as_str()), Some(key.clone()));
            assert_eq!(Key::from_stored(&key.as_str().replace('~', "'~")), None);
            assert_eq!(Key::from_stored(&key.as_str()[1..]), None);
        }
    }

    proptest! {
        #[test]
        fn every_stored_key_is_read_back(text in ".{1,60}", number: i128, id: [u8; 16], symbol: char, truth: bool) {
            let key = Key::of(&text, &[&number, &byte_id(&id), &symbol, &truth]).unwrap();
            prop_assert_eq!(Key::from_stored(key.as_str()), Some(key));
        }

        #[test]
        fn whatever_is_typed_ends_in_a_part_or_an_error(text in ".{0,20}") {
            let forced = format!("s:{text}").parse::<Typed>();
            prop_assert_eq!(forced, Ok(Typed::Text(text.clone())));
            let _ = text.parse::<Typed>();
            let _ = Key::from_stored(&text);
        }
    }
}
