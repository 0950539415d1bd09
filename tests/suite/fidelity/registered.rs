//! What the registry knows of a handler.

use std::time::SystemTime;

use idem_runtime::{Registry, Retention, Semantics, idempotent};
use sqlx::{Sqlite, Transaction};

use super::write;

struct Event<'a> {
    id: &'a str,
    tenant: u32,
    body: Vec<u8>,
    at: SystemTime,
}

fn region(tenant: u32) -> u32 {
    tenant / 1000
}

#[allow(dead_code, reason = "registered without being called")]
///
/// Books the event.
///
/// In every detail.
#[idempotent(
    key(msg.id, region(msg.tenant) , "v1"),
    fingerprint(msg.body, msg.tenant),
    occurred_at = msg.at,
    retention = "1d12h",
    replay,
    name = "registered:full/name",
)]
async fn full(tx: &mut Transaction<'_, Sqlite>, msg: &Event<'_>) -> sqlx::Result<u8> {
    write(tx, msg.id).await?;
    Ok(7)
}

#[allow(dead_code, reason = "registered without being called")]
#[idempotent(key = "ids[0]", retention = "2w")]
async fn registered_under_its_own_name(tx: &mut Transaction<'_, Sqlite>, ids: [u32; 4]) -> sqlx::Result<()> {
    write(tx, &format!("{ids:?}")).await
}

#[test]
fn the_registry_shows_what_the_declaration_says() {
    let registry = Registry::load().unwrap();
    let meta = registry.get("registered:full/name").unwrap();
    assert_eq!(meta, full::META);
    assert!(meta.name_is_pinned && meta.replay);
    assert_eq!(meta.place.function, concat!(module_path!(), "::full"));
    assert_eq!(meta.place.file, file!());
    assert_eq!((meta.summary, meta.message), ("Books the event.", "Event<'_>"));
    assert_eq!(meta.key, ["msg.id", "region(msg.tenant)", "\"v1\""]);
    assert_eq!(meta.fingerprint, ["msg.body", "msg.tenant"]);
    assert_eq!(meta.occurred_at, Some("msg.at"));
    assert_eq!(meta.retention, Some(Retention::hours(36)));
    assert_eq!(meta.semantics, Semantics::Idempotent);
}

#[test]
fn a_handler_is_registered_under_its_own_name() {
    let meta = *Registry::load().unwrap().get("registered_under_its_own_name").unwrap();
    assert!(!meta.name_is_pinned && !meta.replay);
    assert_eq!((meta.summary, meta.message), ("", "[u32; 4]"));
    assert_eq!((meta.key, meta.retention), (&["ids[0]"][..], Some(Retention::days(14))));
}

#[test]
fn the_key_holds_fingerprint_and_time_beside_its_parts() {
    let msg = Event { id: "e", tenant: 7_001, body: vec![1], at: SystemTime::UNIX_EPOCH };
    let key = full::key(&msg).unwrap();
    assert_eq!(key.as_str(), "1/s:e/i:7/s:v1");
    assert_ne!(key, full::key(&Event { body: vec![2], ..msg }).unwrap());
}
