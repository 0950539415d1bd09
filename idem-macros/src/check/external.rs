//! Effects outside the database, which no rollback undoes.

use proc_macro2::{Ident, Span};
use syn::LitStr;

use super::window::{Sum, seconds};
use crate::args::{Args, Given};
use crate::diag::{Errors, did_you_mean};
use crate::duration;
use crate::option::example;
use crate::semantics::Semantics;
use crate::value::{ExternalArg, Length};

/// How an external effect can be kept from happening twice.
pub(crate) const GUARDS: [&str; 4] = ["provider_key", "lookup", "outbox", "none"];

pub(super) fn refuse(args: &Args, errors: &Errors) {
    let is_redelivered = args.semantics != Semantics::AtMostOnce;
    for given in &args.external {
        refuse_incomplete_external(given, is_redelivered, errors);
        refuse_unknown_guard(given, errors);
        refuse_misplaced_window(given, is_redelivered, errors);
        if is_redelivered {
            refuse_unjudged_provider_window(args, given, errors);
            refuse_short_provider_window(args, given, errors);
        }
    }
}

impl ExternalArg {
    fn has_guard(&self, guard: &str) -> bool {
        self.guard.as_ref().is_some_and(|given| given == guard)
    }
}

/// The declaration is read by whoever answers for the second charge.
fn refuse_incomplete_external(given: &Given<ExternalArg>, is_redelivered: bool, errors: &Errors) {
    let Given { option, value } = given;
    let lacks = |field, why: &str| {
        let help = format!("`{}`", example(&Ident::new("external", Span::call_site())));
        errors.refuse(*option, format_args!("this external effect lacks its `{field}`"), help, why);
    };
    if value.provider.as_ref().is_none_or(|provider| provider.value().trim().is_empty()) {
        lacks("provider", "the catalog names who is called, so that one knows whom to ask");
    }
    if value.guard.is_none() {
        lacks("guard", "what keeps it from happening twice is one of `provider_key`, `lookup`, `outbox` and `none`");
    }
    if value.risk.is_none() {
        lacks("risk", "every guard leaves a window open, and what can happen in it is written down");
    }
    if value.has_guard("provider_key") && value.window.is_none() && is_redelivered {
        lacks("window", "a provider recognises a repeated key for a time only; after it the effect happens again");
    }
    if value.has_guard("lookup") && value.lookup.is_none() {
        lacks(
            "lookup",
            "how the provider is asked before each call is written down: `lookup = \"GET /charges?order=…\"`",
        );
    }
}

/// A guard that is not one of these is none.
fn refuse_unknown_guard(Given { value, .. }: &Given<ExternalArg>, errors: &Errors) {
    let Some(guard) = value.guard.as_ref().filter(|guard| GUARDS.iter().all(|known| *guard != known)) else {
        return;
    };
    let help = match did_you_mean(&guard.to_string(), GUARDS) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the guards are `{}`", GUARDS.join("`, `")),
    };
    let why = "the guard says what keeps the effect from happening twice";
    errors.refuse(guard.span(), format_args!("unknown guard `{guard}`"), help, why);
}

/// A number that nobody compares looks like a guarantee.
fn refuse_misplaced_window(given: &Given<ExternalArg>, is_redelivered: bool, errors: &Errors) {
    let Given { option, value } = given;
    let guard = value.guard.as_ref().filter(|guard| GUARDS[1..].iter().any(|other| guard == other));
    let what = match guard {
        Some(guard) => {
            format!("`window` is how long the provider recognises a repeated key, and the guard is `{guard}`")
        }
        None if !is_redelivered => {
            "`window` is compared with the redelivery, and there is none at most once".to_owned()
        }
        None => return,
    };
    if value.window.is_some() {
        let help =
            if is_redelivered { "remove the `window`, or write `guard = provider_key`" } else { "remove the `window`" };
        errors.refuse(*option, what, help, "a number that nobody compares looks like a guarantee");
    }
}

/// Without a declared redelivery there is nothing to compare the provider's window with.
fn refuse_unjudged_provider_window(args: &Args, Given { option, value }: &Given<ExternalArg>, errors: &Errors) {
    let is_judged = args.redelivery.is_some() || args.policy.is_some() || args.mentions("redelivery");
    if value.window.is_some() && value.has_guard("provider_key") && value.lookup.is_none() && !is_judged {
        errors.refuse(
            *option,
            "the provider's window cannot be compared with the redelivery, which is not declared",
            "`redelivery(broker = \"12h\")`, with each way in which the event can come again",
            "a redelivery after the provider has forgotten its key has the effect a second time",
        );
    }
}

/// The provider forgets its key before the last redelivery. Constants are compared by the compiler instead
/// (`HandlerMeta::compare_providers`).
fn refuse_short_provider_window(args: &Args, Given { value, .. }: &Given<ExternalArg>, errors: &Errors) {
    let (Some(Length::Text(text)), None) = (&value.window, &value.lookup) else {
        return;
    };
    let (Some(window), Some(sum)) = (value.window.as_ref().and_then(seconds), Sum::of(args)) else {
        return;
    };
    if window < sum.secs {
        let provider = value.provider.as_ref().map_or_else(|| "provider".to_owned(), LitStr::value);
        errors.refuse(
            text.span(),
            format_args!(
                "`{provider}` recognises a repeated key for {}, less than the declared redelivery window {sum}",
                duration::text(window)
            ),
            "ask the provider before each call, and say how: `lookup = \"GET /charges?order=…\"`; or shorten the redelivery",
            "a redelivery after the provider has forgotten its key has the effect a second time",
        );
    }
}
