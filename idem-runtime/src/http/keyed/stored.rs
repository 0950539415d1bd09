//! The stored form of a response. Persisted: a change is a new version, never an edit.
//!
//! A line of JSON, then the body as it is: `{"v":1,"status":201,"headers":[["content-type","text/plain"]]}`, a line feed,
//! the bytes. A header's value stands there as ISO 8859-1, which any bytes are.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Head {
    v: u8,
    status: u16,
    headers: Vec<(String, String)>,
}

/// The response, with those of its headers that are kept.
pub(super) fn write(
    status: StatusCode,
    headers: &HeaderMap,
    kept: &[HeaderName],
    body: &Bytes,
) -> Result<Vec<u8>, serde_json::Error> {
    let text = |value: &HeaderValue| value.as_bytes().iter().copied().map(char::from).collect::<String>();
    let headers = kept
        .iter()
        .flat_map(|name| headers.get_all(name).iter().map(|value| (name.as_str().to_owned(), text(value))))
        .collect();
    let mut stored = serde_json::to_vec(&Head { v: 1, status: status.as_u16(), headers })?;
    stored.push(b'\n');
    stored.extend_from_slice(body);
    Ok(stored)
}

/// The response of a stored form; `None` if it is none of this version.
pub(super) fn read(stored: &[u8]) -> Option<Response<Body>> {
    let end = stored.iter().position(|byte| *byte == b'\n')?;
    let head: Head = serde_json::from_slice(&stored[..end]).ok().filter(|head: &Head| head.v == 1)?;
    let mut response = Response::new(Body::from(stored[end + 1..].to_vec()));
    *response.status_mut() = StatusCode::from_u16(head.status).ok()?;
    for (name, value) in head.headers {
        let bytes: Option<Vec<u8>> = value.chars().map(|char| u8::try_from(char).ok()).collect();
        response.headers_mut().append(HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(&bytes?).ok()?);
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use axum::http::header::{CONTENT_TYPE, LOCATION};

    use super::*;

    /// Golden: what is stored by one release is read by the next.
    #[test]
    fn the_stored_form_is_the_documented_one() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(LOCATION, HeaderValue::from_bytes(b"/caf\xe9").unwrap());
        headers.insert("set-cookie", HeaderValue::from_static("secret=1"));
        let body = Bytes::from_static(b"{\"a\":1}\n\xff");
        let stored = write(StatusCode::CREATED, &headers, &[CONTENT_TYPE, LOCATION], &body).unwrap();
        let golden = b"{\"v\":1,\"status\":201,\"headers\":[[\"content-type\",\"application/json\"],[\"location\",\"/caf\xc3\xa9\"]]}\n{\"a\":1}\n\xff";
        assert_eq!(stored, golden);
        let response = read(golden).unwrap();
        assert_eq!((response.status(), response.headers().len()), (StatusCode::CREATED, 2));
        assert_eq!(response.headers()[LOCATION].as_bytes(), b"/caf\xe9");
    }

    #[test]
    fn what_is_no_stored_response_is_none() {
        let bad = [
            &b""[..],
            b"{}",
            b"{}\n",
            b"{\"v\":2,\"status\":200,\"headers\":[]}\n",
            b"{\"v\":1,\"status\":9,\"headers\":[]}\n",
        ];
        for bad in bad {
            assert!(read(bad).is_none());
        }
    }
}
