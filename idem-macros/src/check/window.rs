//! How long keys are kept, and how long events can come again.

use std::fmt;

use proc_macro2::Span;
use syn::Expr;
use syn::spanned::Spanned;

use crate::args::Args;
use crate::diag::Errors;
use crate::value::{Length, WindowArg};
use crate::{duration, text};

pub(super) fn refuse(args: &Args, errors: &Errors) {
    if args.semantics.has_key() {
        refuse_missing_retention(args, errors);
    }
    refuse_unreadable_retention(args, errors);
    refuse_two_decisions(args, errors);
    refuse_bad_redelivery(args, errors);
    refuse_short_retention(args, errors);
}

/// Keys that are kept for ever slow down every delivery; keys that are dropped too early double an effect. So the
/// window is a decision, and it is written down.
fn refuse_missing_retention(args: &Args, errors: &Errors) {
    let is_there = args.retention.is_some() || args.policy.is_some();
    if !is_there && !args.mentions("retention") && !args.mentions("policy") {
        errors.refuse(
            Span::call_site(),
            "this handler has no retention",
            "say how long its keys are kept: `retention = \"7d\"`, or by a constant for several handlers, `policy = PAYMENTS`",
            "it must be longer than the longest redelivery: broker retries, dead-letter replays and reprocessing by \
             hand, added up",
        );
    }
}

/// A window that is misread is a window that is wrong.
fn refuse_unreadable_retention(args: &Args, errors: &Errors) {
    if let Some(given) = &args.retention {
        unreadable("the retention", "retention", &given.value, errors);
    }
    for window in args.windows() {
        unreadable(&format!("the window `{}`", window.source), &window.source.to_string(), &window.length, errors);
    }
    for window in args.external.iter().filter_map(|given| given.value.window.as_ref()) {
        unreadable("the provider's window", "window", window, errors);
    }
}

fn unreadable(subject: &str, option: &str, length: &Length, errors: &Errors) {
    const WHY: &str =
        "a window that is misread doubles an effect; months have no fixed length, a bare number has no unit";
    let units = format!("a whole number with one of the units `s`, `m`, `h`, `d`, `w`: `{option} = \"7d\"`");
    match length {
        Length::Text(text) => {
            let value = text.value();
            if let Err(reason) = duration::seconds(&value) {
                let what = if value.is_empty() { subject.to_owned() } else { format!("{subject} `{value}`") };
                let what = format!("{what} {reason}");
                match duration::meant(&value) {
                    Some(meant) => errors.refuse(text.span(), what, format_args!("`{option} = \"{meant}\"`"), WHY),
                    None => errors.refuse(text.span(), what, units, WHY),
                }
            }
        }
        Length::Const(number) if is_number(number) => {
            errors.refuse(number.span(), format_args!("{subject} is a text with a unit"), units, WHY);
        }
        Length::Const(_) => {}
    }
}

/// A list without windows declares nothing, and a source that is named twice is counted twice.
fn refuse_bad_redelivery(args: &Args, errors: &Errors) {
    const HELP: &str = "`redelivery(broker = \"1d\", dead_letter = \"3d\", replay = \"2d\")`, or leave it out";
    let Some(given) = &args.redelivery else {
        return;
    };
    if given.value.is_empty() {
        errors.refuse(
            given.option,
            "`redelivery` names no window",
            HELP,
            "an empty list looks like a check, and checks nothing",
        );
    }
    for (index, window) in given.value.iter().enumerate() {
        if given.value[..index].iter().any(|earlier| earlier.source == window.source) {
            let what = format!("the window `{}` is given twice", window.source);
            errors.refuse(window.source.span(), what, HELP, "the windows add up: one that is there twice counts twice");
        }
    }
}

/// A policy is both numbers. One of them beside it would leave the reader guessing which one holds.
fn refuse_two_decisions(args: &Args, errors: &Errors) {
    let Some(policy) = &args.policy else {
        return;
    };
    let beside = args.retention.as_ref().map(|given| ("retention", given.option));
    let beside = beside.into_iter().chain(args.redelivery.as_ref().map(|given| ("redelivery", given.option)));
    for (option, at) in beside {
        errors.refuse(
            at,
            format_args!("`{option}` and `policy` are two decisions for one window"),
            format_args!("remove `{option}`; the policy `{}` has it", text::compact(&policy.value)),
            "a policy holds the retention and the redelivery together, so that they cannot drift apart",
        );
    }
}

/// The one decision that doubles an effect without anybody noticing: a key that is purged while its event can still come
/// again. Lengths that are constants are compared by the compiler instead (`HandlerMeta::compare_retention`).
fn refuse_short_retention(args: &Args, errors: &Errors) {
    let Some(Length::Text(text)) = args.retention.as_ref().map(|given| &given.value) else {
        return;
    };
    let (Ok(retention), Some(sum)) = (duration::seconds(&text.value()), Sum::of(args)) else {
        return;
    };
    if sum.secs >= retention {
        errors.refuse(
            text.span(),
            format_args!(
                "the retention {} must be longer than the declared redelivery window {sum}",
                duration::text(retention)
            ),
            format_args!("`retention = \"{}\"`", duration::text(duration::next_day_after(sum.secs))),
            "a message that is redelivered after its key was purged is applied twice",
        );
    }
}

/// The declared windows added up, where the macro can read them all.
pub(super) struct Sum {
    pub(super) secs: u64,
    terms: Vec<String>,
}

impl Sum {
    pub(super) fn of(args: &Args) -> Option<Self> {
        let mut sum = Self { secs: 0, terms: Vec::new() };
        for WindowArg { source, length } in args.windows() {
            let secs = seconds(length)?;
            sum.secs = sum.secs.saturating_add(secs);
            sum.terms.push(format!("{source} {}", duration::text(secs)));
        }
        (!sum.terms.is_empty()).then_some(sum)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", duration::text(self.secs), self.terms.join(" + "))
    }
}

/// The length in seconds, if it is a text that can be read.
pub(super) fn seconds(length: &Length) -> Option<u64> {
    match length {
        Length::Text(text) => duration::seconds(&text.value()).ok(),
        Length::Const(_) => None,
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Unary(unary) => is_number(&unary.expr),
        _ => false,
    }
}
