//! What a keyed route adds to an OpenAPI document.
#![allow(dead_code, reason = "utoipa reads what is written over a function, and nobody calls it")]

use idem_runtime::{ErrorKind, KeyedRoute, http_route};
use serde_json::{Value, json};
use utoipa::OpenApi;

http_route! {
    static CREATE: KeyedRoute = KeyedRoute::new("openapi.create", "POST,PUT /payments").retention("24h");
    static CANCEL: KeyedRoute = KeyedRoute::new("openapi.cancel", "POST /cancel/{id}").retention("24h").optional();
    static ABSENT: KeyedRoute = KeyedRoute::new("openapi.absent", "PATCH /payments").retention("24h");
}

#[utoipa::path(post, path = "/payments", responses((status = 201, description = "made"), (status = 409, description = "mine")))]
fn create() {}

#[utoipa::path(put, path = "/payments", params(("idempotency-key" = String, Header, description = "mine")))]
fn put() {}

#[utoipa::path(post, path = "/cancel/{id}", params(("id" = u64, Path)))]
fn cancel() {}

#[derive(OpenApi)]
#[openapi(paths(create, put, cancel))]
struct Api;

fn key_of(operation: &Value) -> Vec<&Value> {
    let is_key = |one: &&Value| one["name"].as_str().unwrap().eq_ignore_ascii_case("idempotency-key");
    operation["parameters"].as_array().unwrap().iter().filter(is_key).collect()
}

#[test]
fn a_keyed_route_describes_its_header_and_its_answers() {
    let mut document = Api::openapi();
    for _ in 0..2 {
        CREATE.describe(&mut document).unwrap();
        CANCEL.describe(&mut document).unwrap();
    }
    let document = serde_json::to_value(&document).unwrap();
    let (create, put) = (&document["paths"]["/payments"]["post"], &document["paths"]["/payments"]["put"]);
    let header = key_of(create);
    assert_eq!((header.len(), &header[0]["required"], &header[0]["in"]), (1, &json!(true), &json!("header")));
    assert_eq!(header[0]["schema"], json!({"type": "string", "minLength": 1, "maxLength": 255}));
    let answers: Vec<_> = create["responses"].as_object().unwrap().keys().collect();
    assert_eq!(answers, ["201", "400", "409", "422"]);
    let missing = &create["responses"]["400"];
    for code in ["idempotency_key_missing", "idempotency_key_malformed"] {
        assert!(missing["description"].as_str().unwrap().contains(code), "{missing}");
    }
    let properties = &missing["content"]["application/problem+json"]["schema"]["properties"];
    assert!(properties["code"].is_object(), "{properties}");
    assert_eq!(create["responses"]["409"]["description"], "mine", "what was there stays");
    assert_eq!((key_of(put).len(), &key_of(put)[0]["description"]), (1, &json!("mine")));
    assert!(put["responses"]["409"]["headers"]["retry-after"].is_object());

    let cancel = &document["paths"]["/cancel/{id}"]["post"];
    assert_eq!(key_of(cancel)[0]["required"], json!(false));
    assert!(!cancel["responses"]["400"]["description"].as_str().unwrap().contains("missing"));

    let error = ABSENT.describe(&mut Api::openapi()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Registry);
    assert!(error.to_string().contains("`PATCH /payments`"), "{error}");
}
