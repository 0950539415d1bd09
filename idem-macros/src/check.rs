//! One `refuse_*` function per rule. The heading of the same name in `docs/diagnostics.md` says more.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Expr, GenericArgument, PathArguments, Safety, Signature, Type};

use crate::args::{Args, RetentionArg};
use crate::diag::{Errors, did_you_mean};
use crate::handler::{Handler, bare};
use crate::{duration, names};

/// Refuses whatever would not be a handler that applies each event once.
pub(crate) fn refuse(args: &mut Args, handler: &Handler, errors: &Errors) {
    refuse_missing_key(args, errors);
    refuse_empty_key(args, errors);
    refuse_missing_retention(args, errors);
    refuse_unreadable_retention(args, errors);
    refuse_bad_redelivery(args, errors);
    refuse_short_retention(args, errors);
    refuse_bad_name(args, handler, errors);
    refuse_not_async(handler, errors);
    refuse_modifier(handler, errors);
    refuse_no_transaction(handler, errors);
    refuse_static_transaction(handler, errors);
    refuse_no_message(handler, errors);
    refuse_no_result(handler, errors);
    refuse_unknown_name(args, handler, errors);
}

/// Nothing else can tell a redelivery from a new event.
fn refuse_missing_key(args: &Args, errors: &Errors) {
    if args.lacks_key() {
        errors.refuse(
            Span::call_site(),
            "this handler has no key",
            "name what identifies the event: `key(msg.order_id)`",
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

/// Keys that are kept for ever slow down every delivery; keys that are dropped too early double an effect. So the
/// window is a decision, and it is written down.
fn refuse_missing_retention(args: &Args, errors: &Errors) {
    if args.lacks_retention() {
        errors.refuse(
            Span::call_site(),
            "this handler has no retention",
            "say how long its keys are kept: `retention = \"7d\"`",
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
}

fn unreadable(subject: &str, option: &str, length: &RetentionArg, errors: &Errors) {
    const WHY: &str =
        "a window that is misread doubles an effect; months have no fixed length, a bare number has no unit";
    let units = format!("a whole number with one of the units `s`, `m`, `h`, `d`, `w`: `{option} = \"7d\"`");
    match length {
        RetentionArg::Text(text) => {
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
        RetentionArg::Const(number) if is_number(number) => {
            let what = if option == "retention" { "a retention" } else { "a window" };
            errors.refuse(number.span(), format_args!("{what} is a text with a unit"), units, WHY);
        }
        RetentionArg::Const(_) => {}
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

/// The one decision that doubles an effect without anybody noticing: a key that is purged while its event can still come
/// again. Lengths that are constants are compared by the compiler instead (`HandlerMeta::redelivery`).
fn refuse_short_retention(args: &Args, errors: &Errors) {
    let Some(RetentionArg::Text(text)) = args.retention.as_ref().map(|given| &given.value) else {
        return;
    };
    let mut terms = Vec::new();
    let mut sum = 0_u64;
    for window in args.windows() {
        let RetentionArg::Text(length) = &window.length else {
            return;
        };
        let Ok(secs) = duration::seconds(&length.value()) else {
            return;
        };
        sum = sum.saturating_add(secs);
        terms.push(format!("{} {}", window.source, duration::text(secs)));
    }
    let Ok(retention) = duration::seconds(&text.value()) else {
        return;
    };
    if !terms.is_empty() && retention <= sum {
        let (retention, window) = (duration::text(retention), duration::text(sum));
        let longer = duration::text(duration::next_day_after(sum));
        errors.refuse(
            text.span(),
            format_args!(
                "the retention {retention} must be longer than the declared redelivery window {window} ({})",
                terms.join(" + ")
            ),
            format_args!("`retention = \"{longer}\"`"),
            "a message that is redelivered after its key was purged is applied twice",
        );
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Unary(unary) => is_number(&unary.expr),
        _ => false,
    }
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
        None => (handler.name().span(), ", and the function's own name cannot be it"),
    };
    errors.refuse(
        at,
        format_args!("a handler's name is 1 to 128 of the characters A-Z, a-z, 0-9 and `._:/-`{whose}"),
        "`name = \"billing.credit_balance\"`",
        WHY,
    );
}

/// The engine awaits the body inside its transaction.
fn refuse_not_async(handler: &Handler, errors: &Errors) {
    if handler.sig.asyncness.is_none() {
        errors.refuse(
            handler.sig.fn_token.span(),
            "a handler must be an `async fn`",
            format_args!("`async fn {}`", handler.name()),
            "the engine awaits it inside the transaction (an `#[async_trait]` above this attribute hides the `async`)",
        );
    }
}

/// The function under the handler's name is another one, which could not keep the promise of the modifier.
fn refuse_modifier(handler: &Handler, errors: &Errors) {
    let Signature { constness, safety, abi, .. } = &handler.sig;
    let safety = (!matches!(safety, Safety::Default)).then(|| safety.span());
    let modifiers = [constness.map(|token| token.span), safety, abi.as_ref().map(Spanned::span)];
    for at in modifiers.into_iter().flatten() {
        errors.refuse(
            at,
            "a handler is an `async fn` without further modifiers",
            format_args!("`async fn {}`", handler.name()),
            "the engine calls it, and can keep no promise that is not in its types",
        );
    }
}

/// An effect outside the key's transaction can happen without the key, or the key without the effect.
fn refuse_no_transaction(handler: &Handler, errors: &Errors) {
    if handler.transaction().is_none() {
        let at = handler.first().map_or_else(|| handler.sig.paren_token.span.join(), |first| first.ty.span());
        errors.refuse(
            at,
            "the first parameter of a handler is its transaction, as a `&mut` reference",
            "`tx: &mut sqlx::Transaction<'_, sqlx::Sqlite>`",
            "the key and the effect are written in one transaction, or they are not written together",
        );
    }
}

/// The engine's transaction borrows a connection. The compiler would say so in the words of a lifetime error.
fn refuse_static_transaction(handler: &Handler, errors: &Errors) {
    if let Some(at) = handler.transaction().and_then(static_lifetime) {
        errors.refuse(
            at,
            "the transaction of a handler is lent to it, so it is not `'static`",
            "`tx: &mut sqlx::Transaction<'_, sqlx::Sqlite>`",
            "the engine takes the transaction back to commit it",
        );
    }
}

fn static_lifetime(ty: &Type) -> Option<Span> {
    let Type::Path(path) = bare(ty) else {
        return None;
    };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Lifetime(lifetime) if lifetime.ident == "static" => Some(lifetime.span()),
        _ => None,
    })
}

/// Without a message there is no event.
fn refuse_no_message(handler: &Handler, errors: &Errors) {
    if handler.transaction().is_some() && handler.params().is_empty() {
        errors.refuse(
            handler.sig.paren_token.span.join(),
            "a handler takes a message behind its transaction",
            "`msg: &OrderPaid`",
            "the key is made from the message",
        );
    }
}

/// A handler that cannot fail would commit whatever happened.
fn refuse_no_result(handler: &Handler, errors: &Errors) {
    if handler.output().is_none() {
        let at = handler.returned().map_or_else(|| handler.sig.paren_token.span.close(), Spanned::span);
        errors.refuse(
            at,
            "a handler must return a `Result`",
            "`-> Result<(), sqlx::Error>`",
            "`Ok` commits key and effect, `Err` rolls both back and has the delivery retried",
        );
    }
}

/// A key is made of the handler's parameters. For a name in a string the compiler would offer to replace the string,
/// so it is judged here, and taken out of the list that the compiler sees.
fn refuse_unknown_name(args: &mut Args, handler: &Handler, errors: &Errors) {
    let known = handler.bindings();
    if known.is_empty() {
        return;
    }
    let refuse = |expr: &Expr| {
        let Some(unknown) = names::unknown(expr, &known) else {
            return false;
        };
        let known = || known.iter().map(String::as_str);
        let help = match did_you_mean(&unknown.to_string(), known()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the names are `{}`", known().collect::<Vec<_>>().join("`, `")),
        };
        let what = format!("`{unknown}` is nothing that the key can read");
        errors.refuse(unknown.span(), what, help, "what identifies the event stands in the message");
        true
    };
    for list in [&mut args.key, &mut args.fingerprint].into_iter().flatten() {
        list.value.retain(|part| !refuse(part));
    }
    if args.occurred_at.as_ref().is_some_and(|given| refuse(&given.value)) {
        args.occurred_at = None;
    }
}
