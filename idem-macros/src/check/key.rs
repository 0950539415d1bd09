//! What the key, the fingerprint and the event's time are made of.

use std::collections::BTreeSet;
use std::fmt;

use proc_macro2::Span;
use syn::Expr;

use super::allow::Allowances;
use super::{category, part};
use crate::args::{Args, Given};
use crate::diag::{Errors, did_you_mean};
use crate::handler::Handler;
use crate::key::place;
use crate::names;
use crate::text::compact;

/// More parts than an identifier has.
const MAX_PARTS: usize = 6;

/// A list of expressions over the parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Key,
    Fingerprint,
    OccurredAt,
}

impl List {
    /// How it is written.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Key => "key(msg.order_id, msg.kind)",
            Self::Fingerprint => "fingerprint(msg.cents, msg.currency)",
            Self::OccurredAt => "occurred_at = msg.created_at",
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "a key",
            Self::Fingerprint => "a fingerprint",
            Self::OccurredAt => "the event's time",
        })
    }
}

/// Which part is spoken of. Prints itself where there is more than one: in a string all parts are underlined alike.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) list: List,
    index: usize,
    of: usize,
    part: &'a Expr,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { of: 0 | 1, .. } => Ok(()),
            Self { index, part, .. } => write!(f, " (part {}: `{}`)", index + 1, compact(part)),
        }
    }
}

pub(super) fn refuse(args: &mut Args, handler: &Handler, errors: &Errors) {
    if !args.semantics.has_key() {
        return;
    }
    refuse_missing_key(args, errors);
    refuse_empty_key(args, errors);
    let known: BTreeSet<String> = handler.bindings().iter().map(ToString::to_string).collect();
    let allowances = Allowances::of(&args.allow);
    let judge = Judge { known: &known, allowances: &allowances, errors };
    if ["key", "fingerprint", "occurred_at"].iter().any(|option| args.mentions(option)) {
        allowances.overlook();
    }
    let refused_parts = &mut args.refused_parts;
    if let Some(key) = &mut args.key {
        refuse_too_many_parts(key, &allowances, errors);
        if judge_parts(&mut key.value, List::Key, refused_parts, &judge) {
            refuse_constant_key(key, &known, errors);
            refuse_repeated_part(key, errors);
        }
    }
    if let Some(fingerprint) = &mut args.fingerprint
        && judge_parts(&mut fingerprint.value, List::Fingerprint, refused_parts, &judge)
    {
        refuse_idle_fingerprint(fingerprint, &known, errors);
    }
    if let Some(given) = args.occurred_at.take() {
        let mut time = vec![given.value];
        if judge_parts(&mut time, List::OccurredAt, refused_parts, &judge) {
            refuse_constant_time(&time, &known, errors);
        }
        args.occurred_at = time.pop().map(|value| Given { option: given.option, value });
    }
    allowances.refuse(errors);
}

/// What a part is judged by.
struct Judge<'a> {
    known: &'a BTreeSet<String>,
    allowances: &'a Allowances<'a>,
    errors: &'a Errors,
}

/// Whether nothing was refused. What was refused is taken out, so that the compiler does not complain once more.
fn judge_parts(parts: &mut Vec<Expr>, list: List, refused_parts: &mut Vec<Expr>, judge: &Judge<'_>) -> bool {
    let of = parts.len();
    let all = std::mem::take(parts);
    for (index, part) in all.into_iter().enumerate() {
        let at = Place { list, index, of, part: &part };
        if !part::refuse(&part, at, judge.errors) || refuse_unknown_name(&part, judge.known, judge.errors) {
            judge.allowances.overlook();
            continue;
        }
        let is_sound = !category::refuse(&part, at, judge.allowances, judge.errors);
        if is_sound { parts.push(part) } else { refused_parts.push(part) }
    }
    parts.len() == of
}

/// Nothing else can tell a redelivery from a new event.
fn refuse_missing_key(args: &Args, errors: &Errors) {
    if args.key.is_none() && !args.mentions("key") {
        errors.refuse(
            Span::call_site(),
            "this handler has no key",
            "name what identifies the event: `key(msg.order_id)`; an effect that is the same however often it happens takes \
             `#[naturally_idempotent(reason = \"…\")]` instead",
            "without a key nothing tells a redelivery from a new event, and its effect happens twice",
        );
    }
}

/// A key without parts is the same for every message.
fn refuse_empty_key(args: &Args, errors: &Errors) {
    if let Some(key) = args.key.as_ref().filter(|key| key.value.is_empty()) {
        errors.refuse(
            key.option,
            "the key is empty",
            "name what identifies the event: `key(msg.order_id)`",
            "every message would be the same event: the first is applied, all others are dropped as duplicates",
        );
    }
}

/// A key in which the message has no say is the same for every message.
fn refuse_constant_key(key: &Given<Vec<Expr>>, known: &BTreeSet<String>, errors: &Errors) {
    if let Some(first) = key.value.first().filter(|_| key.value.iter().all(|part| is_constant(part, known))) {
        errors.refuse(
            place(first),
            "this key is the same for every message",
            "name what identifies the event: `key(msg.order_id)`",
            "the first message is applied, and all others are dropped as duplicates of it",
        );
    }
}

/// An event time that is the same for every message makes each of them expired, or none.
fn refuse_constant_time(time: &[Expr], known: &BTreeSet<String>, errors: &Errors) {
    if let Some(time) = time.first().filter(|time| is_constant(time, known)) {
        errors.refuse(
            place(time),
            "this event time is the same for every message",
            "name the time that the producer gave the event: `occurred_at = msg.created_at`",
            "events older than the retention are parked; by one time for all, all of them are or none is",
        );
    }
}

/// A fingerprint that cannot differ finds nothing.
fn refuse_idle_fingerprint(fingerprint: &Given<Vec<Expr>>, known: &BTreeSet<String>, errors: &Errors) {
    if fingerprint.value.iter().all(|part| is_constant(part, known)) {
        errors.refuse(
            fingerprint.option,
            "this fingerprint is the same for every message, and compares nothing",
            "name what must be equal in every delivery of one event: `fingerprint(msg.cents)`",
            "it looks like a check for keys that stand for two contents, and finds none",
        );
    }
}

/// Without names to know, as while the parameters are being typed, nothing is called constant.
fn is_constant(part: &Expr, known: &BTreeSet<String>) -> bool {
    !known.is_empty() && names::read(part).is_disjoint(known)
}

/// The same part twice is mostly another one misspelt.
fn refuse_repeated_part(key: &Given<Vec<Expr>>, errors: &Errors) {
    let texts: Vec<_> = key.value.iter().map(compact).collect();
    for (index, part) in key.value.iter().enumerate() {
        if texts[..index].contains(&texts[index]) {
            errors.refuse(
                place(part),
                format_args!("`{}` is in the key twice", texts[index]),
                "remove it, or name the part that was meant",
                "the second one tells no event from another",
            );
        }
    }
}

/// A key of many parts is the content by another name.
fn refuse_too_many_parts(key: &Given<Vec<Expr>>, allowances: &Allowances<'_>, errors: &Errors) {
    if let Some(first_too_many) = key.value.get(MAX_PARTS).filter(|_| !allowances.allow("too_many_parts")) {
        errors.refuse(
            place(first_too_many),
            format_args!("the key has {} parts, and an identifier has at most {MAX_PARTS}", key.value.len()),
            "name those that identify the event, and compare the others: `key(msg.order_id), fingerprint(msg.cents)`; or \
             `allow(too_many_parts, reason = \"…\")`",
            "a key of many parts is mostly the content: any of them that differs in a redelivery doubles the effect",
        );
    }
}

/// A key is made of the handler's parameters. For a name in a string the compiler would offer to replace the string,
/// so it is judged here, and taken out of the list that the compiler sees.
fn refuse_unknown_name(part: &Expr, known: &BTreeSet<String>, errors: &Errors) -> bool {
    if known.is_empty() {
        return false;
    }
    let Some(unknown) = names::unknown(part, known) else {
        return false;
    };
    let known = || known.iter().map(String::as_str);
    let help = match did_you_mean(&unknown.to_string(), known()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it can read `{}`", known().collect::<Vec<_>>().join("`, `")),
    };
    let what = format!("`{unknown}` is nothing that the key can read");
    errors.refuse(unknown.span(), what, help, "what identifies the event stands in the message");
    true
}
