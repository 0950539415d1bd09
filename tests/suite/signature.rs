//! The signatures of webhooks: what the senders' own libraries have signed, and what nobody may get through.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use idem_runtime::{Signature, SignatureError};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    scheme: String,
    secret: String,
    at: u64,
    body: String,
    headers: BTreeMap<String, String>,
}

impl Vector {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../data/signatures.json")).unwrap()
    }

    fn signature(&self, secret: &str) -> Signature {
        let signature = match self.scheme.as_str() {
            "stripe" => Signature::stripe(secret),
            "standard" => Signature::standard_webhooks(secret),
            _ => Signature::hmac_sha256("x-hub-signature-256", secret),
        };
        let at = UNIX_EPOCH + Duration::from_secs(self.at);
        signature.unwrap().clock(move || at)
    }

    fn headers(&self) -> HeaderMap {
        let pair = |(name, value): (&String, &String)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        self.headers.iter().map(pair).collect()
    }

    fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.body).unwrap()
    }
}

#[test]
fn what_the_official_libraries_signed_is_taken_and_a_changed_byte_is_not() {
    let all = Vector::all();
    assert_eq!(all.len(), 27);
    for vector in all {
        let (signature, headers, body) = (vector.signature(&vector.secret), vector.headers(), vector.body());
        let verified = signature.verify(&headers, &body).unwrap();
        assert_eq!(verified.signed_at.is_none(), vector.scheme == "hmac");
        assert_eq!(verified.id.as_deref(), (vector.scheme == "standard").then_some("msg_1"));
        for place in [0, body.len() / 2, body.len()] {
            let mut changed = body.clone();
            if place < body.len() {
                changed[place] ^= 1;
            } else {
                changed.push(b' ');
            }
            assert_eq!(signature.verify(&headers, &changed), Err(SignatureError::NoMatch));
        }
        // Another secret beside the right one is a rotation; alone it is nobody's.
        let other = if vector.scheme == "standard" { "whsec_b3RoZXI=" } else { "other" };
        assert_eq!(vector.signature(other).verify(&headers, &body), Err(SignatureError::NoMatch));
        vector.signature(other).secret(&vector.secret).unwrap().verify(&headers, &body).unwrap();
    }
}

#[test]
fn a_signature_holds_as_long_as_its_tolerance_in_both_directions() {
    let (at, tolerance) = (1_700_000_000, 300);
    for vector in Vector::all().iter().filter(|vector| vector.scheme != "hmac") {
        let at_time = |now: u64| {
            let now = UNIX_EPOCH + Duration::from_secs(now);
            vector.signature(&vector.secret).clock(move || now).verify(&vector.headers(), &vector.body()).map(drop)
        };
        assert_eq!(at_time(at + tolerance), Ok(()));
        assert_eq!(at_time(at + tolerance + 1), Err(SignatureError::Stale));
        assert_eq!(at_time(at - tolerance), Ok(()));
        assert_eq!(at_time(at - tolerance - 1), Err(SignatureError::FromTheFuture));
    }
}

fn stripe_at(now: SystemTime) -> Signature {
    Signature::stripe("s").unwrap().clock(move || now)
}

/// A header of Stripe's with a signature that is right for whatever stands where the time does.
fn stripe_header(time: &str) -> String {
    use hmac::Mac;
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(b"s").unwrap();
    mac.update(format!("{time}.").as_bytes());
    let digest: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={time},v1={digest}")
}

fn with(name: &'static str, values: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[test]
fn a_time_that_is_none_or_far_away_is_refused_even_if_signed() {
    let signature = stripe_at(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let verify = |header: &str| signature.verify(&with("stripe-signature", &[header.as_bytes()]), b"").map(drop);
    assert_eq!(verify(&stripe_header("1700000000")), Ok(()));
    for far in ["253402300799", "9223372036854775808", "18446744073709551616", &"9".repeat(400)] {
        assert_eq!(verify(&stripe_header(far)), Err(SignatureError::FromTheFuture), "{far}");
    }
    assert_eq!(verify(&stripe_header("0")), Err(SignatureError::Stale));
    for none in ["", "-1700000000", "+1700000000", "1.7e9", "1700000000.0", " 1700000000", "0x10", "now"] {
        assert_eq!(verify(&stripe_header(none)), Err(SignatureError::Malformed("stripe-signature")), "{none}");
    }
    let right = stripe_header("1700000000");
    let (time, v1) = right.split_once(',').unwrap();
    for none in ["", time.trim_start_matches("t="), v1, &format!("{time},{right}"), "t", ",", &format!("{right},")] {
        assert_eq!(verify(none), Err(SignatureError::Malformed("stripe-signature")), "{none}");
    }
    let digest = v1.trim_start_matches("v1=");
    let unmatched = ["v1=", "v0=", &format!("v0={digest}"), &format!("v1={}", &digest[2..]), "v1=zz"];
    for none in unmatched {
        assert_eq!(verify(&format!("{time},{none}")), Err(SignatureError::NoMatch), "{none}");
    }
    assert_eq!(verify(&format!("{time},v1={}", digest.to_uppercase())), Ok(()), "hexadecimal has two cases");
}

#[test]
fn a_header_is_there_once() {
    let headers = |count: usize| {
        let value = stripe_header("1700000000");
        with("stripe-signature", &vec![value.as_bytes(); count])
    };
    let signature = stripe_at(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    assert_eq!(signature.verify(&headers(0), b"").unwrap_err(), SignatureError::Missing("stripe-signature"));
    for count in [2, 10] {
        assert_eq!(signature.verify(&headers(count), b"").unwrap_err(), SignatureError::Repeated("stripe-signature"));
    }
    for vector in Vector::all() {
        for name in vector.headers.keys() {
            let mut headers = vector.headers();
            let value = headers.remove(name.as_str()).unwrap();
            let missing = vector.signature(&vector.secret).verify(&headers, &vector.body());
            assert!(matches!(missing, Err(SignatureError::Missing(missing)) if missing == name));
            let name: HeaderName = name.parse().unwrap();
            headers.append(name.clone(), value.clone());
            headers.append(name.clone(), value);
            let twice = vector.signature(&vector.secret).verify(&headers, &vector.body());
            assert!(matches!(twice, Err(SignatureError::Repeated(twice)) if twice == name));
        }
    }
}

#[test]
fn no_header_gets_through_by_chance_or_panics() {
    let signature = stripe_at(SystemTime::UNIX_EPOCH);
    let standard = Signature::standard_webhooks("whsec_b3RoZXI=").unwrap();
    let plain = Signature::hmac_sha256("x-signature", "s").unwrap();
    for round in 0..4_000 {
        let bytes: Vec<u8> =
            uuid::Uuid::new_v4().into_bytes().into_iter().filter(|byte| *byte >= 0x20 && *byte != 0x7f).collect();
        let cut = &b"t=1,v1=ab,v1=\xff sha256=v1,AAAA"[..round % 24];
        let value = HeaderValue::from_bytes(&[cut, &bytes].concat()).unwrap();
        let names = ["stripe-signature", "webhook-id", "webhook-timestamp", "webhook-signature", "x-signature"];
        let headers = names.map(|name| (HeaderName::from_static(name), value.clone())).into_iter().collect();
        for signature in [&signature, &standard, &plain] {
            signature.verify(&headers, &bytes).unwrap_err();
        }
    }
}

#[test]
fn a_secret_that_is_none_is_refused_at_start_and_never_shown() {
    assert_eq!(Signature::stripe("").unwrap_err(), SignatureError::BadSecret);
    assert_eq!(Signature::standard_webhooks("whsec_").unwrap_err(), SignatureError::BadSecret);
    assert_eq!(Signature::standard_webhooks("whsec_?").unwrap_err(), SignatureError::BadSecret);
    assert_eq!(Signature::stripe("s").unwrap().secret("").unwrap_err(), SignatureError::BadSecret);
    let shown = format!("{:?}", Signature::stripe("hunter2").unwrap());
    assert!(!shown.contains("hunter2") && shown.contains("Stripe"), "{shown}");
}
