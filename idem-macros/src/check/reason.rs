//! What is written for people: the handler's name, and why it is declared as it is.

use proc_macro2::Span;
use syn::LitStr;

use crate::args::{Args, Given};
use crate::diag::Errors;
use crate::handler::Handler;
use crate::semantics::Semantics;

pub(super) fn refuse(args: &Args, handler: &Handler, errors: &Errors) {
    refuse_bad_name(args, handler, errors);
    if args.semantics != Semantics::Idempotent {
        refuse_missing_reason(args, errors);
    }
    if args.semantics == Semantics::AtMostOnce {
        refuse_missing_loss(args, errors);
    }
    refuse_thin_reason(args, errors);
}

/// The name is the first half of every stored key, so it must mean the same in every database and every tool.
fn refuse_bad_name(args: &Args, handler: &Handler, errors: &Errors) {
    const WHY: &str = "the name is stored with every key, and must compare the same in every database";
    let name = args.name_of(handler);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    if (1..=128).contains(&name.len()) && name.chars().all(is_plain) {
        return;
    }
    let (at, whose) = match &args.name {
        Some(given) => (given.value.span(), ""),
        None => (handler.name().span(), ": the function's own name cannot be it"),
    };
    errors.refuse(
        at,
        format_args!("a handler's name is 1 to 128 of the characters A-Z, a-z, 0-9 and `._:/-`{whose}"),
        "`name = \"billing.credit_balance\"`",
        WHY,
    );
}

/// A handler without a key is a decision against one, and somebody will ask why.
fn refuse_missing_reason(args: &Args, errors: &Errors) {
    if args.reason.is_some() || args.mentions("reason") {
        return;
    }
    let (what, help, why) = match args.semantics {
        Semantics::AtMostOnce => (
            "this handler does not say why its events may be lost",
            "`reason = \"a late reading is worthless\"`",
            "its delivery is acknowledged before it runs, so whatever stops it loses the event",
        ),
        _ => (
            "this handler does not say why applying an event again changes nothing",
            "`reason = \"sets the price to the message's value\"`",
            "no key tells a redelivery from a new event, so the effect itself must be the same however often it happens",
        ),
    };
    errors.refuse(Span::call_site(), what, help, why);
}

/// What is lost is somebody's.
fn refuse_missing_loss(args: &Args, errors: &Errors) {
    if args.loss.is_none() && !args.mentions("loss") {
        errors.refuse(
            Span::call_site(),
            "this handler does not say what is lost when it fails",
            "`loss = \"one reading in the chart\"`",
            "an at-most-once handler loses the event when it fails, and whoever misses it will look here",
        );
    }
}

/// The catalog prints it for people who were not there when it was written.
fn refuse_thin_reason(args: &Args, errors: &Errors) {
    let reasons = args.reason.iter().map(|given| ("reason", given));
    for (option, Given { value, .. }) in reasons.chain(args.loss.iter().map(|given| ("loss", given))) {
        if is_thin(value) {
            let example = if option == "loss" { "one reading in the chart" } else { "a late reading is worthless" };
            thin(option, value, example, errors);
        }
    }
    for Given { value, .. } in &args.external {
        let risk = value.risk.iter().map(|risk| ("risk", risk, "a second charge"));
        let lookup = value.lookup.iter().map(|lookup| ("lookup", lookup, "GET /charges?order=…"));
        risk.chain(lookup)
            .filter(|(_, text, _)| is_thin(text))
            .for_each(|(field, text, example)| thin(field, text, example, errors));
    }
    for given in &args.allow {
        if let Some(reason) = given.value.reason.as_ref().filter(|reason| is_thin(reason)) {
            thin("reason", reason, "the exam's own attempt, set by the producer", errors);
        }
    }
}

fn thin(option: &str, text: &LitStr, example: &str, errors: &Errors) {
    errors.refuse(
        text.span(),
        format_args!("the `{option}` explains nothing"),
        format_args!("say it in at least ten characters: `{option} = \"{example}\"`"),
        "the catalog prints it for people who were not there when it was written",
    );
}

/// Too short to say anything.
fn is_thin(text: &LitStr) -> bool {
    text.value().trim().chars().count() < 10
}
