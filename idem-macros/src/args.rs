//! The attribute's grammar. Every option keeps its name and its value, with their places in the source.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, LitStr, Path, Token};

use crate::diag::{Errors, did_you_mean};
use crate::key;

/// Every option, in the order in which messages list them.
const OPTIONS: [&str; 7] = ["key", "retention", "name", "occurred_at", "fingerprint", "replay", "crate"];

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

/// An option's value, and where its name stands.
pub(crate) struct Given<T> {
    pub(crate) option: Span,
    pub(crate) value: T,
}

/// How long keys are kept, as written.
pub(crate) enum RetentionArg {
    Text(LitStr),
    Const(Expr),
}

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) key: Option<Given<Vec<Expr>>>,
    pub(crate) retention: Option<Given<RetentionArg>>,
    pub(crate) name: Option<Given<LitStr>>,
    pub(crate) occurred_at: Option<Given<Expr>>,
    pub(crate) fingerprint: Option<Given<Vec<Expr>>>,
    pub(crate) replay: Option<Given<()>>,
    pub(crate) krate: Option<Given<Path>>,
}

impl Args {
    /// Reads option by option, so that a mistake in one leaves the others readable.
    pub(crate) fn read(tokens: TokenStream, errors: &Errors) -> Self {
        let mut args = Self::default();
        for chunk in split_at_commas(tokens) {
            match syn::parse2::<Arg>(chunk) {
                Ok(arg) => args.put(arg, errors),
                Err(error) => errors.push(error),
            }
        }
        args
    }

    fn put(&mut self, Arg { option, value }: Arg, errors: &Errors) {
        let at = &option;
        match value {
            Value::Key(value) => set(&mut self.key, at, value, errors),
            Value::Retention(value) => set(&mut self.retention, at, value, errors),
            Value::Name(value) => set(&mut self.name, at, value, errors),
            Value::OccurredAt(value) => set(&mut self.occurred_at, at, value, errors),
            Value::Fingerprint(value) => set(&mut self.fingerprint, at, value, errors),
            Value::Replay => set(&mut self.replay, at, (), errors),
            Value::Crate(value) => set(&mut self.krate, at, value, errors),
        }
    }
}

fn set<T>(slot: &mut Option<Given<T>>, option: &Ident, value: T, errors: &Errors) {
    if slot.is_some() {
        errors.refuse(
            option.span(),
            format_args!("`{option}` is given twice"),
            format_args!("remove this `{option}`"),
            "two values for one decision: neither can be right without the other being wrong",
        );
    } else {
        *slot = Some(Given { option: option.span(), value });
    }
}

struct Arg {
    option: Ident,
    value: Value,
}

enum Value {
    Key(Vec<Expr>),
    Retention(RetentionArg),
    Name(LitStr),
    OccurredAt(Expr),
    Fingerprint(Vec<Expr>),
    Replay,
    Crate(Path),
}

impl Parse for Arg {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let option = input.call(Ident::parse_any)?;
        let value = match option.to_string().as_str() {
            "key" => Value::Key(key::parts(input)?),
            "fingerprint" => Value::Fingerprint(key::parts(input)?),
            "retention" => {
                input.parse::<Token![=]>()?;
                Value::Retention(if input.peek(LitStr) {
                    RetentionArg::Text(input.parse()?)
                } else {
                    RetentionArg::Const(input.parse()?)
                })
            }
            "name" => {
                input.parse::<Token![=]>()?;
                Value::Name(input.parse()?)
            }
            "occurred_at" => {
                input.parse::<Token![=]>()?;
                Value::OccurredAt(key::one(input)?)
            }
            "replay" => Value::Replay,
            "crate" => {
                input.parse::<Token![=]>()?;
                Value::Crate(input.call(Path::parse_mod_style)?)
            }
            unknown => return Err(unknown_option(&option, unknown)),
        };
        if !input.is_empty() {
            return Err(
                input.error(format!("unexpected text after the value of `{option}`; options are separated by commas"))
            );
        }
        Ok(Self { option, value })
    }
}

fn unknown_option(option: &Ident, word: &str) -> syn::Error {
    let meant = SYNONYMS
        .iter()
        .find(|(synonym, _)| *synonym == word)
        .map(|(_, option)| *option)
        .or_else(|| did_you_mean(word, OPTIONS));
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the options are {}", OPTIONS.map(|option| format!("`{option}`")).join(", ")),
    };
    syn::Error::new(
        option.span(),
        format!(
            "unknown option `{word}`\nhelp: {help}\nnote: an option that is ignored would be a guarantee that is not given"
        ),
    )
}

/// Cuts at the commas outside brackets. Empty pieces are trailing commas and the like.
fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut chunks = vec![TokenStream::new()];
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => chunks.push(TokenStream::new()),
            token => {
                if let Some(chunk) = chunks.last_mut() {
                    token.to_tokens(chunk);
                }
            }
        }
    }
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}
