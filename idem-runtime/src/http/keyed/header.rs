//! The `Idempotency-Key` header of draft-ietf-httpapi-idempotency-key-header.

use axum::http::HeaderMap;

use super::super::problem::Problem;

pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The longest key; what Stripe takes.
pub(super) const LONGEST: usize = 255;

/// The key, without the quotes of the draft's form: `"abc"` and `abc` are one key, since the same client library sends
/// either. `None` without the header.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let (Some(value), more) = (values.next(), values.next()) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| Problem::KeyMalformed)?.trim_matches(' ');
    let key = unquote(text).filter(|key| more.is_none() && is_plain(key));
    key.map(Some).ok_or(Problem::KeyMalformed)
}

fn is_plain(key: &str) -> bool {
    (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// A string of RFC 8941, or the text as it stands if no quote begins it. `None` for a quoted string that is none.
fn unquote(text: &str) -> Option<String> {
    let Some(rest) = text.strip_prefix('"') else {
        return (!text.contains([' ', '"'])).then(|| text.to_owned());
    };
    let (mut key, mut chars) = (String::new(), rest.chars());
    loop {
        match chars.next()? {
            '"' => return chars.as_str().is_empty().then_some(key),
            '\\' => key.push(chars.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            char => key.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::*;

    fn of(value: &[u8]) -> Result<Option<String>, Problem> {
        let mut headers = HeaderMap::new();
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
        read(&headers)
    }

    #[test]
    fn quoted_and_unquoted_keys_are_one_and_the_rest_is_refused() {
        let key = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(of(b"8e03978e"), key("8e03978e"));
        assert_eq!(of(b"\"8e03978e\""), key("8e03978e"));
        assert_eq!(of(b"  \"a b\"  "), key("a b"));
        assert_eq!(of(br#""a\"b\\""#), key(r#"a"b\"#));
        assert_eq!(of(&[b'k'; 255]), key(&"k".repeat(255)));
        for bad in
            [&b""[..], b"\"\"", b"\"open", b"\"a\"b", b"\"a\"; b=1", br#""\a""#, b"a b", b"a\"", b"\xc3\xa4", b"\ta\tb"]
        {
            assert_eq!(of(bad), Err(Problem::KeyMalformed), "{bad:?}");
        }
        assert_eq!(of(&[b'k'; 256]), Err(Problem::KeyMalformed));
        assert_eq!(of(&[b'k'; 10_000]), Err(Problem::KeyMalformed));
        assert_eq!(read(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn two_headers_are_refused_even_if_equal() {
        let mut headers = HeaderMap::new();
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        assert_eq!(read(&headers), Err(Problem::KeyMalformed));
    }
}
