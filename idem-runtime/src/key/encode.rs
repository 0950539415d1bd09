//! The persisted form of a key, version 1. Golden vectors guard it (`tests/suite/key_vectors.rs`); a change is a new
//! version, never an edit.
//!
//! `1/s:ord_123/i:7`: the version, then per part a slash, a letter for the type, a colon and the value. All of it is
//! printable ASCII, so that it can be typed into an SQL literal; every other byte, and the characters with a meaning
//! here or in SQL, stand as `%XX`. A longer one is cut and completed with the digest of the whole, behind a `~` that
//! no value can contain.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::KeyError;

const VERSION: char = '1';

/// The longest text that is stored as it is. PostgreSQL refuses index rows over 2,704 bytes, InnoDB keys over 767 in
/// its oldest row format; this leaves room for the handler's name in both.
const MAX_STORED: usize = 128;

/// How much of a longer text stays readable in front of its digest.
const READABLE: usize = 56;

/// One part of a key, ready to be written. Made by [`KeyPart::part`](super::KeyPart::part).
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Text of any characters. Empty text is refused as a missing identifier.
    Text(&'a str),
    /// A whole number, of whichever width: `7_u8` and `7_i64` are equal parts.
    Integer(i128),
    /// A whole number too large for an `i128`.
    Large(u128),
    /// A truth value.
    Bool(bool),
    /// One character. Not equal to a text of one character.
    Char(char),
    /// A UUID. The nil UUID is refused as a missing identifier.
    Uuid(uuid::Uuid),
    /// Bytes that identify the event; never a body or a digest of one. Empty bytes are refused.
    Bytes(&'a [u8]),
}

impl Part<'_> {
    /// Refuses what stands for a missing identifier; all events without one would share a key.
    pub(super) fn refuse_missing(&self, position: usize) -> Result<(), KeyError> {
        match self {
            Part::Text("") | Part::Bytes([]) => Err(KeyError::Empty { position }),
            Part::Uuid(id) if id.is_nil() => Err(KeyError::Nil { position }),
            _ => Ok(()),
        }
    }
}

/// Writes parts behind each other.
pub(super) struct Encoder {
    text: String,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self { text: String::from(VERSION) }
    }

    pub(super) fn push(&mut self, part: &Part<'_>) {
        self.text.push('/');
        match part {
            Part::Text(value) => self.escaped('s', value.as_bytes()),
            Part::Char(value) => self.escaped('c', value.encode_utf8(&mut [0; 4]).as_bytes()),
            Part::Integer(value) => self.displayed('i', value),
            Part::Large(value) => self.displayed('i', value),
            Part::Bool(value) => self.displayed('b', value),
            Part::Uuid(value) => self.displayed('u', &value.hyphenated()),
            Part::Bytes(value) => {
                self.text.push_str("x:");
                push_hex(&mut self.text, value);
            }
        }
    }

    fn displayed(&mut self, tag: char, value: &dyn std::fmt::Display) {
        // Writing to a `String` cannot fail.
        let _ = write!(self.text, "{tag}:{value}");
    }

    fn escaped(&mut self, tag: char, value: &[u8]) {
        self.text.push(tag);
        self.text.push(':');
        for &byte in value {
            let plain = matches!(byte, b' '..=b'}') && !matches!(byte, b'%' | b'/' | b'\'' | b'\\');
            if plain {
                self.text.push(char::from(byte));
            } else {
                self.text.push('%');
                push_hex_upper(&mut self.text, byte);
            }
        }
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.text.as_bytes()).into()
    }

    pub(super) fn into_stored(mut self) -> String {
        if self.text.len() > MAX_STORED {
            let digest = self.digest();
            self.text.truncate(readable_end(&self.text));
            self.text.push('~');
            push_hex(&mut self.text, &digest);
        }
        self.text
    }
}

/// Where to cut so that no `%XX` is split.
fn readable_end(text: &str) -> usize {
    match text[READABLE - 2..READABLE].find('%') {
        Some(at) => READABLE - 2 + at,
        None => READABLE,
    }
}

fn push_hex(to: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(to, "{byte:02x}");
    }
}

fn push_hex_upper(to: &mut String, byte: u8) {
    let _ = write!(to, "{byte:02X}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{ByteId, Key, KeyPart, byte_id};

    #[derive(Debug, Clone, PartialEq)]
    enum Value {
        Text(String),
        Integer(i64),
        Bool(bool),
        Char(char),
        Bytes(Vec<u8>),
    }

    /// Text made of whatever a careless encoding would trip over.
    fn tricky() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("/".to_owned()),
            Just(":".to_owned()),
            Just("%".to_owned()),
            Just("%2F".to_owned()),
            Just("~".to_owned()),
            Just("s:".to_owned()),
            Just("1:".to_owned()),
            Just("\0".to_owned()),
            Just("\\".to_owned()),
            Just("'".to_owned()),
            Just("é".to_owned()),
            Just("e\u{301}".to_owned()),
            Just("A".to_owned()),
            Just("a".to_owned()),
            Just(" ".to_owned()),
            Just("|".to_owned()),
            any::<char>().prop_map(String::from),
            "[a-z]{30,70}",
        ];
        prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat())
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            4 => tricky().prop_map(Value::Text),
            1 => any::<i64>().prop_map(Value::Integer),
            1 => (-20_i64..20).prop_map(Value::Integer),
            1 => (-20_i64..20).prop_map(|n| Value::Text(n.to_string())),
            1 => any::<bool>().prop_map(Value::Bool),
            1 => any::<char>().prop_map(Value::Char),
            1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Value::Bytes),
        ]
    }

    fn encode(values: &[Value]) -> String {
        let bytes: Vec<ByteId<'_>> =
            values.iter().map(|value| byte_id(if let Value::Bytes(bytes) = value { bytes } else { b"-" })).collect();
        let parts: Vec<&dyn KeyPart> = values
            .iter()
            .zip(&bytes)
            .map(|(value, bytes)| match value {
                Value::Text(value) => value as &dyn KeyPart,
                Value::Integer(value) => value,
                Value::Bool(value) => value,
                Value::Char(value) => value,
                Value::Bytes(_) => bytes,
            })
            .collect();
        Key::of(parts[0], &parts[1..]).expect("no part is empty").to_string()
    }

    /// A list of values, and either a neighbour of it or another list: independent lists hardly ever come close.
    fn pair() -> impl Strategy<Value = (Vec<Value>, Vec<Value>)> {
        let list = || prop::collection::vec(value(), 1..4);
        prop_oneof![
            (list(), list()),
            list().prop_map(|list| (list.clone(), list)),
            (list(), any::<prop::sample::Index>(), value()).prop_map(|(list, at, value)| {
                let mut other = list.clone();
                other[at.index(list.len())] = value;
                (list, other)
            }),
            // The same characters, cut elsewhere.
            (tricky(), tricky(), any::<prop::sample::Index>()).prop_map(|(a, b, at)| {
                let joined: Vec<char> = a.chars().chain(b.chars()).collect();
                let cut = 1 + at.index(joined.len().saturating_sub(1).max(1));
                let (left, right) = joined.split_at(cut.min(joined.len()));
                let mut other = vec![Value::Text(left.iter().collect())];
                if !right.is_empty() {
                    other.push(Value::Text(right.iter().collect()));
                }
                (vec![Value::Text(a), Value::Text(b)], other)
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn keys_are_equal_exactly_when_their_parts_are((left, right) in pair()) {
            prop_assert_eq!(left == right, encode(&left) == encode(&right));
        }

        #[test]
        fn a_stored_key_is_short_printable_ascii(values in prop::collection::vec(value(), 1..6)) {
            let stored = encode(&values);
            prop_assert!(stored.len() <= super::MAX_STORED);
            prop_assert!(stored.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'\''));
        }
    }
}
