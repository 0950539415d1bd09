//! The grammar of one option.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, LitStr, Path, Token, parenthesized, token};

use crate::args::{RetentionArg, WindowArg};
use crate::diag::{did_you_mean, refusal};
use crate::key;

/// Every option, in the order in which messages list them, and how it is written.
const OPTIONS: [(&str, &str); 8] = [
    ("key", "key(msg.order_id)"),
    ("retention", "retention = \"7d\""),
    ("redelivery", "redelivery(broker = \"1d\", dead_letter = \"3d\")"),
    ("name", "name = \"billing.credit\""),
    ("occurred_at", "occurred_at = msg.created_at"),
    ("fingerprint", "fingerprint(msg.cents)"),
    ("replay", "replay"),
    ("crate", "crate = our_crate::idem_runtime"),
];

/// Names that people use for an option.
const SYNONYMS: [(&str, &str); 8] = [
    ("id", "key"),
    ("keys", "key"),
    ("idempotency_key", "key"),
    ("ttl", "retention"),
    ("expires", "retention"),
    ("expires_after", "retention"),
    ("window", "retention"),
    ("timestamp", "occurred_at"),
];

/// One option as written.
pub(crate) struct Arg {
    pub(crate) option: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    Key(Vec<Expr>),
    Retention(RetentionArg),
    Redelivery(Vec<WindowArg>),
    Name(LitStr),
    OccurredAt(Expr),
    Fingerprint(Vec<Expr>),
    Replay,
    Crate(Path),
}

/// The option that a word names, or was probably meant to name.
pub(crate) fn meant(word: &str) -> Option<&'static str> {
    let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map(|(_, option)| *option);
    synonym.or_else(|| did_you_mean(word, OPTIONS.map(|(option, _)| option)))
}

impl Parse for Arg {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let option = match input.call(Ident::parse_any) {
            Ok(option) => option,
            Err(error) => return Err(no_option(&error)),
        };
        let value = match option.to_string().as_str() {
            "key" => Value::Key(list(input, &option)?),
            "fingerprint" => Value::Fingerprint(list(input, &option)?),
            "retention" => Value::Retention(assigned(input, &option, retention)?),
            "redelivery" => Value::Redelivery(windows(input, &option)?),
            "name" => Value::Name(assigned(input, &option, |input: ParseStream<'_>| input.parse())?),
            "occurred_at" => Value::OccurredAt(assigned(input, &option, key::one)?),
            "crate" => Value::Crate(assigned(input, &option, Path::parse_mod_style)?),
            "replay" => Value::Replay,
            unknown => return Err(unknown_option(input, &option, unknown)),
        };
        if input.is_empty() { Ok(Self { option, value }) } else { Err(too_much(input, &option)) }
    }
}

fn retention(input: ParseStream<'_>) -> syn::Result<RetentionArg> {
    if input.peek(LitStr) { input.parse().map(RetentionArg::Text) } else { input.parse().map(RetentionArg::Const) }
}

/// Named windows in brackets.
fn windows(input: ParseStream<'_>, option: &Ident) -> syn::Result<Vec<WindowArg>> {
    if !input.peek(token::Paren) {
        return Err(no_value(option));
    }
    let content;
    parenthesized!(content in input);
    let window = |input: ParseStream<'_>| {
        let source = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(WindowArg { source, length: retention(input)? })
    };
    let windows = content.parse_terminated(window, Token![,]).map_err(|error| {
        let help = format!("`{}`", example(option));
        let why = "each way in which the event can come again has a name and a length, and they add up";
        refusal(error.span(), format_args!("the windows of `redelivery` cannot be read: {error}"), help, why)
    })?;
    Ok(windows.into_iter().collect())
}

fn list(input: ParseStream<'_>, option: &Ident) -> syn::Result<Vec<Expr>> {
    if input.peek(token::Paren) || input.peek(Token![=]) { key::parts(input) } else { Err(no_value(option)) }
}

fn assigned<T>(
    input: ParseStream<'_>,
    option: &Ident,
    value: impl Fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<T> {
    if !input.peek(Token![=]) {
        return Err(no_value(option));
    }
    input.parse::<Token![=]>()?;
    value(input).map_err(|error| {
        let help = format!("`{}`", example(option));
        let why = "what cannot be read cannot be promised";
        refusal(error.span(), format_args!("the value of `{option}` cannot be read: {error}"), help, why)
    })
}

fn example(option: &Ident) -> &'static str {
    let option = option.to_string();
    OPTIONS.iter().find(|(name, _)| *name == option).map_or("", |(_, example)| example)
}

fn no_option(error: &syn::Error) -> syn::Error {
    refusal(
        error.span(),
        "an option begins with its name",
        "`#[idempotent(key(msg.order_id), retention = \"7d\")]`",
        "the value alone does not say what it decides",
    )
}

fn no_value(option: &Ident) -> syn::Error {
    refusal(
        option.span(),
        format_args!("`{option}` needs a value"),
        format_args!("`{}`", example(option)),
        "every option but `replay` is followed by `=` and its value; parts stand in brackets",
    )
}

fn unknown_option(input: ParseStream<'_>, option: &Ident, word: &str) -> syn::Error {
    let what = format!("unknown option `{word}`");
    let why = "an option that is ignored would be a guarantee that is not given";
    // `key = msg.order_id, msg.kind` arrives here as the option `msg`.
    if input.peek(Token![.]) {
        let help = "several parts of a key stand in brackets: `key(msg.order_id, msg.kind)`";
        return refusal(option.span(), what, help, why);
    }
    match meant(word) {
        Some(meant) => refusal(option.span(), what, format_args!("did you mean `{meant}`?"), why),
        None => {
            let all = OPTIONS.map(|(option, _)| format!("`{option}`")).join(", ");
            refusal(option.span(), what, format_args!("the options are {all}"), why)
        }
    }
}

fn too_much(input: ParseStream<'_>, option: &Ident) -> syn::Error {
    let (at, why) = (input.span(), "options are separated by commas");
    if let Ok(next) = input.fork().call(Ident::parse_any)
        && OPTIONS.iter().any(|(name, _)| next == name)
    {
        return refusal(at, format_args!("a comma is missing before `{next}`"), format_args!("`, {next}`"), why);
    }
    if option == "replay" {
        return refusal(at, "`replay` takes no value", "`replay`", "it is on where it is written, and off elsewhere");
    }
    let what = format!("this does not belong to the value of `{option}`");
    refusal(at, what, format_args!("`{}`", example(option)), why)
}
