//! What the registry shows of each decision that a declaration makes.

#![allow(dead_code, reason = "registered without being called")]

use std::time::SystemTime;

use idem_runtime::{
    External, Guard, HandlerMeta, Policy, Registry, Retention, Semantics, at_most_once, idempotent,
    naturally_idempotent,
};
use sqlx::{Sqlite, Transaction};

use super::{Paid, write};

type Tx<'c> = Transaction<'c, Sqlite>;

/// Shared by two handlers.
const PAYMENTS: Policy =
    Policy::retention("7d").redelivery([("broker", "1d"), ("dead_letter", "3d"), ("replay", "2d")]);

mod queues {
    use super::{Policy, Retention};

    /// Without a word on redelivery.
    pub(super) const UNDECLARED: Policy = Policy::retention("36h");
    pub(super) const STRIPE_KEEPS: Retention = Retention::hours(24);
}

#[idempotent(key(msg.id), policy = PAYMENTS, name = "options.policy")]
async fn by_policy(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
    write(tx, &msg.id).await
}

struct Ledger;

impl Ledger {
    #[idempotent(key(msg.id), policy = queues::UNDECLARED, name = "options.policy_of_a_method")]
    async fn by_policy(&self, tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
        write(tx, &msg.id).await
    }

    #[at_most_once(
        reason = "the next ping tells as much",
        loss = "a single ping",
        external(provider = "gateway", guard = none, risk = "a second ping"),
        name = "options.ping"
    )]
    async fn ping(&self, msg: Paid) -> sqlx::Result<String> {
        Ok(msg.id)
    }
}

#[idempotent(
    key(msg.id),
    retention = "7d",
    redelivery(broker = "1d"),
    external(provider = "stripe", guard = provider_key, window = queues::STRIPE_KEEPS, risk = "a second charge"),
    external(provider = "adyen", guard = provider_key, window = "3h", lookup = "GET /charges", risk = "a second charge"),
    external(provider = "crm", guard = lookup, lookup = "GET /contacts", risk = "a second contact"),
    external(provider = "mail", guard = outbox, risk = "a second mail"),
    external(provider = "disk", guard = none, risk = "a second line"),
    name = "options.external"
)]
async fn external(tx: &mut Tx<'_>, msg: &Paid) -> sqlx::Result<()> {
    write(tx, &msg.id).await
}

struct Exam {
    id: u64,
    attempt: u8,
    seat: Option<u8>,
    held_at: SystemTime,
}

#[idempotent(
    key(msg.id, msg.attempt, msg.seat.unwrap_or_default()),
    allow(attempt_scoped, reason = "the exam's own attempt, set by the producer"),
    allow(defaulted, reason = "an exam without seats has the one"),
    occurred_at = "msg.held_at",
    fingerprint = (msg.seat.is_some(), msg.id),
    retention = "2w",
    name = "options.allowed"
)]
async fn allowed(tx: &mut Tx<'_>, msg: Exam) -> sqlx::Result<()> {
    write(tx, &msg.id.to_string()).await
}

/// Sets the price.
#[naturally_idempotent(
    reason = "sets the price to the message's value",
    redelivery(broker = "30m"),
    external(provider = "shop", guard = provider_key, window = "1h", risk = "the price is sent again"),
    name = "options.natural"
)]
async fn natural(tx: &mut Tx<'_>, Paid { id, .. }: &Paid) -> sqlx::Result<()> {
    write(tx, id).await
}

#[at_most_once(reason = "a late reading is worthless", loss = "one reading in the chart")]
async fn read_once_under_its_own_name(reading: &[u8]) -> sqlx::Result<usize> {
    Ok(reading.len())
}

fn registered(name: &str) -> &'static HandlerMeta {
    Registry::load().unwrap().get(name).unwrap()
}

fn windows(meta: &HandlerMeta) -> Vec<(&'static str, String)> {
    meta.redelivery.iter().map(|window| (window.source, window.length.to_string())).collect()
}

#[test]
fn a_policy_is_shown_with_its_name_and_with_what_it_says() {
    let meta = registered("options.policy");
    assert_eq!(meta, by_policy::META);
    assert_eq!((meta.policy, meta.retention), (Some("PAYMENTS"), Some(Retention::days(7))));
    assert_eq!(windows(meta), [("broker", "1d".into()), ("dead_letter", "3d".into()), ("replay", "2d".into())]);
    let meta = registered("options.policy_of_a_method");
    assert_eq!((meta.policy, meta.retention), (Some("queues::UNDECLARED"), Some(Retention::hours(36))));
    assert_eq!((meta.redelivery, meta.key), (&[][..], &["msg.id"][..]));
    assert_eq!(external::META.policy, None);
}

#[test]
fn external_effects_are_shown_in_their_order_with_their_guards() {
    let meta = registered("options.external");
    let guards = [Guard::ProviderKey, Guard::ProviderKey, Guard::Lookup, Guard::Outbox, Guard::None];
    assert_eq!(meta.external.iter().map(|external| external.guard).collect::<Vec<_>>(), guards);
    let providers: Vec<_> = meta.external.iter().map(|external| external.provider).collect();
    assert_eq!(providers, ["stripe", "adyen", "crm", "mail", "disk"]);
    let windows: Vec<_> = meta.external.iter().map(|external| external.window).collect();
    assert_eq!(windows, [Some(queues::STRIPE_KEEPS), Some(Retention::hours(3)), None, None, None]);
    let lookups: Vec<_> = meta.external.iter().map(|external| external.lookup).collect();
    assert_eq!(lookups, [None, Some("GET /charges"), Some("GET /contacts"), None, None]);
    assert_eq!(meta.external[4].risk, "a second line");
    assert_eq!(by_policy::META.external, []);
}

#[test]
fn overridden_refusals_are_shown_with_their_reasons() {
    let meta = registered("options.allowed");
    let shown: Vec<_> = meta.allowed.iter().map(|allowed| (allowed.category, allowed.reason)).collect();
    let first = ("attempt_scoped", "the exam's own attempt, set by the producer");
    assert_eq!(shown, [first, ("defaulted", "an exam without seats has the one")]);
    assert_eq!(meta.key, ["msg.id", "msg.attempt", "msg.seat.unwrap_or_default()"]);
    assert_eq!((meta.fingerprint, meta.occurred_at), (&["msg.seat.is_some()", "msg.id"][..], Some("msg.held_at")));
    assert_eq!(by_policy::META.allowed, []);
    let exam = |seat| Exam { id: 1, attempt: 2, seat, held_at: SystemTime::UNIX_EPOCH };
    assert_eq!(allowed::key(&exam(None)).unwrap().as_str(), "1/i:1/i:2/i:0");
    // The same words, but not the same fingerprint.
    assert_ne!(allowed::key(&exam(None)), allowed::key(&exam(Some(0))));
}

#[test]
fn handlers_without_a_key_show_why_they_have_none() {
    let meta = registered("options.natural");
    assert_eq!(meta, natural::META);
    assert_eq!(meta.semantics, Semantics::NaturallyIdempotent { reason: "sets the price to the message's value" });
    assert_eq!((meta.key, meta.retention, meta.policy), (&[][..], None, None));
    assert_eq!(windows(meta), [("broker", "30m".into())]);
    assert_eq!((meta.summary, meta.message), ("Sets the price.", "Paid"));
    let [External { provider: "shop", window: Some(window), .. }] = meta.external else { panic!("{meta:?}") };
    assert_eq!(*window, Retention::hours(1));

    let meta = registered("read_once_under_its_own_name");
    let (reason, loss) = ("a late reading is worthless", "one reading in the chart");
    assert_eq!(meta.semantics, Semantics::AtMostOnce { reason, loss });
    assert_eq!((meta.name_is_pinned, meta.message, meta.external), (false, "[u8]", &[][..]));

    let meta = registered("options.ping");
    assert!(meta.place.function.ends_with("options::ping"), "{}", meta.place);
    assert_eq!((meta.message, meta.external[0].guard), ("Paid", Guard::None));
    assert!(matches!(meta.semantics, Semantics::AtMostOnce { loss: "a single ping", .. }));
}
