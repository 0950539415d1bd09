//! The options: their names, which attribute takes them, and what is said of one that cannot be read.

use proc_macro2::Ident;
use syn::Token;
use syn::ext::IdentExt;
use syn::parse::ParseStream;

use crate::diag::{did_you_mean, refusal};
use crate::semantics::Semantics::{self, AtMostOnce, Idempotent, NaturallyIdempotent};

/// An option of at least one of the attributes.
pub(crate) struct OptionSpec {
    pub(crate) name: &'static str,
    /// How it is written.
    pub(crate) example: &'static str,
    of: &'static [Semantics],
}

const EACH: &[Semantics] = &Semantics::ALL;
const KEYED: &[Semantics] = &[Idempotent];

/// Every option, in the order in which messages list them.
const OPTIONS: [OptionSpec; 14] = [
    OptionSpec { name: "key", example: "key(msg.order_id)", of: KEYED },
    OptionSpec { name: "retention", example: "retention = \"7d\"", of: KEYED },
    OptionSpec {
        name: "redelivery",
        example: "redelivery(broker = \"1d\", dead_letter = \"3d\")",
        of: &[Idempotent, NaturallyIdempotent],
    },
    OptionSpec { name: "policy", example: "policy = PAYMENTS", of: KEYED },
    OptionSpec { name: "name", example: "name = \"billing.credit\"", of: EACH },
    OptionSpec { name: "occurred_at", example: "occurred_at = msg.created_at", of: KEYED },
    OptionSpec { name: "fingerprint", example: "fingerprint(msg.cents)", of: KEYED },
    OptionSpec { name: "replay", example: "replay", of: KEYED },
    OptionSpec { name: "batch", example: "batch = credit_all", of: KEYED },
    OptionSpec {
        name: "external",
        example: "external(provider = \"stripe\", guard = provider_key, window = \"24h\", risk = \"a second charge\")",
        of: EACH,
    },
    OptionSpec {
        name: "allow",
        example: "allow(attempt_scoped, reason = \"the exam's own attempt, set by the producer\")",
        of: KEYED,
    },
    OptionSpec {
        name: "reason",
        example: "reason = \"sets the price to the message's value\"",
        of: &[AtMostOnce, NaturallyIdempotent],
    },
    OptionSpec { name: "loss", example: "loss = \"one reading in the chart\"", of: &[AtMostOnce] },
    OptionSpec { name: "crate", example: "crate = our_crate::idem_runtime", of: EACH },
];

/// Names that people use for an option.
const SYNONYMS: [(&str, &str); 13] = [
    ("id", "key"),
    ("keys", "key"),
    ("idempotency_key", "key"),
    ("dedup_key", "key"),
    ("ttl", "retention"),
    ("expires", "retention"),
    ("expires_after", "retention"),
    ("window", "retention"),
    ("timestamp", "occurred_at"),
    ("because", "reason"),
    ("why", "reason"),
    ("effect", "external"),
    ("except", "allow"),
];

const WHY_NOT_IGNORED: &str = "an option that is ignored would be a guarantee that is not given";

/// The option that a word names, or was probably meant to name.
pub(crate) fn meant(word: &str, semantics: Semantics) -> Option<&'static str> {
    let names = || OPTIONS.iter().filter(|option| option.of.contains(&semantics)).map(|option| option.name);
    let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map(|(_, option)| *option);
    synonym.filter(|synonym| names().any(|name| name == *synonym)).or_else(|| did_you_mean(word, names()))
}

/// How an option is written.
pub(crate) fn example(option: &Ident) -> &'static str {
    find(&option.to_string()).map_or("", |option| option.example)
}

/// The option of this name, if the attribute takes it.
pub(crate) fn of(semantics: Semantics, input: ParseStream<'_>, option: &Ident) -> syn::Result<&'static str> {
    let word = option.to_string();
    match find(&word) {
        Some(known) if known.of.contains(&semantics) => Ok(known.name),
        Some(known) => Err(refuse_misplaced_option(known, semantics, option)),
        None => Err(refuse_unknown_option(input, semantics, option)),
    }
}

fn find(name: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// An option that another of the attributes takes.
fn refuse_misplaced_option(known: &OptionSpec, semantics: Semantics, option: &Ident) -> syn::Error {
    let takers: Vec<_> = known.of.iter().map(|taker| format!("`#[{}]`", taker.attribute())).collect();
    refusal(
        option.span(),
        format_args!("`{option}` is an option of {}, not of `#[{}]`", takers.join(" and "), semantics.attribute()),
        format_args!("remove `{option}`, or write the attribute it belongs to: `{}`", known.of[0].example()),
        WHY_NOT_IGNORED,
    )
}

fn refuse_unknown_option(input: ParseStream<'_>, semantics: Semantics, option: &Ident) -> syn::Error {
    let what = format!("unknown option `{option}`");
    // `key = msg.order_id, msg.kind` arrives here as the option `msg`.
    if input.peek(Token![.]) {
        let help = "several parts of a key stand in brackets: `key(msg.order_id, msg.kind)`";
        return refusal(option.span(), what, help, WHY_NOT_IGNORED);
    }
    match meant(&option.to_string(), semantics) {
        Some(meant) => refusal(option.span(), what, format_args!("did you mean `{meant}`?"), WHY_NOT_IGNORED),
        None => {
            let all = OPTIONS.iter().filter(|option| option.of.contains(&semantics));
            let all: Vec<_> = all.map(|option| format!("`{}`", option.name)).collect();
            refusal(option.span(), what, format_args!("the options are {}", all.join(", ")), WHY_NOT_IGNORED)
        }
    }
}

/// What stands where the name of an option belongs.
pub(crate) fn refuse_missing_option(error: &syn::Error, semantics: Semantics) -> syn::Error {
    refusal(
        error.span(),
        "an option begins with its name",
        format_args!("`{}`", semantics.example()),
        "the value alone does not say what it decides",
    )
}

/// An option without its value.
pub(crate) fn refuse_missing_value(option: &Ident) -> syn::Error {
    refusal(
        option.span(),
        format_args!("`{option}` needs a value"),
        format_args!("`{}`", example(option)),
        "every option but `replay` is followed by `=` and its value; parts stand in brackets",
    )
}

/// Tokens behind the value of an option.
pub(crate) fn refuse_missing_comma(input: ParseStream<'_>, option: &Ident) -> syn::Error {
    let (at, why) = (input.span(), "options are separated by commas");
    if let Ok(next) = input.fork().call(Ident::parse_any)
        && OPTIONS.iter().any(|option| next == option.name)
    {
        return refusal(at, format_args!("a comma is missing before `{next}`"), format_args!("`, {next}`"), why);
    }
    if option == "replay" {
        return refusal(at, "`replay` takes no value", "`replay`", "it is on where it is written, and off elsewhere");
    }
    let what = format!("this does not belong to the value of `{option}`");
    refusal(at, what, format_args!("`{}`", example(option)), why)
}
