//! The value of each option: what stands behind its name.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Path, Token, parenthesized, token};

use crate::diag::{did_you_mean, refusal};
use crate::semantics::Semantics;
use crate::{key, option};

/// One option as written.
pub(crate) struct Arg {
    pub(crate) option: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    Key(Vec<Expr>),
    Retention(Length),
    Redelivery(Vec<WindowArg>),
    Policy(Expr),
    Name(LitStr),
    OccurredAt(Expr),
    Fingerprint(Vec<Expr>),
    Replay,
    Batch(Path),
    External(ExternalArg),
    Allow(AllowArg),
    Reason(LitStr),
    Loss(LitStr),
    Crate(Path),
}

/// A length of time, as written.
pub(crate) enum Length {
    Text(LitStr),
    Const(Expr),
}

impl Length {
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Text(text) => text.span(),
            Self::Const(value) => value.span(),
        }
    }

    /// Where it stands, if the macro cannot read it.
    pub(crate) fn constant(&self) -> Option<Span> {
        matches!(self, Self::Const(_)).then(|| self.span())
    }
}

/// One way in which the event can come again, as written.
pub(crate) struct WindowArg {
    pub(crate) source: Ident,
    pub(crate) length: Length,
}

/// One effect outside the database, as written.
#[derive(Default)]
pub(crate) struct ExternalArg {
    pub(crate) provider: Option<LitStr>,
    pub(crate) guard: Option<Ident>,
    pub(crate) window: Option<Length>,
    pub(crate) lookup: Option<LitStr>,
    pub(crate) risk: Option<LitStr>,
}

/// A refusal of the key that is overridden, as written.
pub(crate) struct AllowArg {
    pub(crate) category: Ident,
    pub(crate) reason: Option<LitStr>,
}

impl Arg {
    pub(crate) fn read(chunk: TokenStream, semantics: Semantics) -> syn::Result<Self> {
        let parser = |input: ParseStream<'_>| Self::parse(input, semantics);
        parser.parse2(chunk)
    }

    fn parse(input: ParseStream<'_>, semantics: Semantics) -> syn::Result<Self> {
        let option = input.call(Ident::parse_any).map_err(|error| option::refuse_missing_option(&error, semantics))?;
        let value = match option::of(semantics, input, &option)? {
            "key" => Value::Key(list(input, &option)?),
            "fingerprint" => Value::Fingerprint(list(input, &option)?),
            "retention" => Value::Retention(assigned(input, &option, length)?),
            "redelivery" => Value::Redelivery(bracketed(input, &option, window)?),
            "policy" => Value::Policy(assigned(input, &option, any)?),
            "name" => Value::Name(assigned(input, &option, any)?),
            "occurred_at" => Value::OccurredAt(assigned(input, &option, key::one)?),
            "batch" => Value::Batch(assigned(input, &option, any)?),
            "external" => Value::External(external(input, &option)?),
            "allow" => Value::Allow(allow(input, &option)?),
            "reason" => Value::Reason(assigned(input, &option, any)?),
            "loss" => Value::Loss(assigned(input, &option, any)?),
            "crate" => Value::Crate(assigned(input, &option, Path::parse_mod_style)?),
            _ => Value::Replay,
        };
        if input.is_empty() { Ok(Self { option, value }) } else { Err(option::refuse_missing_comma(input, &option)) }
    }
}

/// Whatever the option's type reads.
fn any<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse()
}

fn length(input: ParseStream<'_>) -> syn::Result<Length> {
    if input.peek(LitStr) { input.parse().map(Length::Text) } else { input.parse().map(Length::Const) }
}

fn window(input: ParseStream<'_>) -> syn::Result<WindowArg> {
    let source = input.call(Ident::parse_any)?;
    equals(input, &source)?;
    Ok(WindowArg { source, length: length(input)? })
}

/// The end of a list has no place of its own, so the name is blamed.
fn equals(input: ParseStream<'_>, name: &Ident) -> syn::Result<()> {
    let equals = input.parse::<Token![=]>().map(drop);
    equals.map_err(|_| syn::Error::new(name.span(), format!("`{name}` has no value, written `{name} = …`")))
}

fn external(input: ParseStream<'_>, option: &Ident) -> syn::Result<ExternalArg> {
    const FIELDS: [&str; 5] = ["provider", "guard", "window", "lookup", "risk"];
    let mut external = ExternalArg::default();
    let mut entry = |input: ParseStream<'_>| {
        let field = input.call(Ident::parse_any)?;
        let name = field.to_string();
        if !FIELDS.contains(&name.as_str()) {
            let meant = did_you_mean(&name, FIELDS);
            let meant = meant.map_or_else(|| format!("it takes `{}`", FIELDS.join("`, `")), did_you_mean_text);
            return Err(syn::Error::new(field.span(), format!("unknown word `{name}`, {meant}")));
        }
        equals(input, &field)?;
        let is_new = match name.as_str() {
            "provider" => external.provider.replace(input.parse()?).is_none(),
            "guard" => external.guard.replace(input.call(Ident::parse_any)?).is_none(),
            "window" => external.window.replace(length(input)?).is_none(),
            "lookup" => external.lookup.replace(input.parse()?).is_none(),
            _ => external.risk.replace(input.parse()?).is_none(),
        };
        if is_new { Ok(()) } else { Err(syn::Error::new(field.span(), format!("`{name}` is given twice"))) }
    };
    bracketed(input, option, |input| entry(input))?;
    Ok(external)
}

fn did_you_mean_text(meant: &str) -> String {
    format!("did you mean `{meant}`?")
}

fn allow(input: ParseStream<'_>, option: &Ident) -> syn::Result<AllowArg> {
    let mut category = None;
    let mut reason = None;
    let mut entry = |input: ParseStream<'_>| {
        let word = input.call(Ident::parse_any)?;
        if category.is_none() {
            category = Some(word);
            return Ok(());
        }
        if word != "reason" || reason.is_some() {
            return Err(syn::Error::new(word.span(), "one category and its `reason` stand here"));
        }
        equals(input, &word)?;
        reason = Some(input.parse()?);
        Ok(())
    };
    bracketed(input, option, |input| entry(input))?;
    let category = category.ok_or_else(|| option::refuse_missing_value(option))?;
    Ok(AllowArg { category, reason })
}

/// Entries in brackets. Each is read on its own, so that one mistake does not hide the next.
fn bracketed<T>(
    input: ParseStream<'_>,
    option: &Ident,
    mut entry: impl FnMut(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<Vec<T>> {
    if !input.peek(token::Paren) {
        return Err(option::refuse_missing_value(option));
    }
    let content;
    parenthesized!(content in input);
    let mut errors: Option<syn::Error> = None;
    let mut entries = Vec::new();
    for chunk in split_at_commas(content.parse()?) {
        let parser = |input: ParseStream<'_>| entry(input);
        match parser.parse2(chunk) {
            Ok(value) => entries.push(value),
            Err(error) => {
                let error = refuse_unreadable_value(option, &error);
                match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                }
            }
        }
    }
    errors.map_or(Ok(entries), Err)
}

fn list(input: ParseStream<'_>, option: &Ident) -> syn::Result<Vec<Expr>> {
    if input.peek(token::Paren) || input.peek(Token![=]) {
        key::parts(input)
    } else {
        Err(option::refuse_missing_value(option))
    }
}

fn assigned<T>(
    input: ParseStream<'_>,
    option: &Ident,
    value: impl Fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<T> {
    if !input.peek(Token![=]) {
        return Err(option::refuse_missing_value(option));
    }
    input.parse::<Token![=]>()?;
    value(input).map_err(|error| refuse_unreadable_value(option, &error))
}

fn refuse_unreadable_value(option: &Ident, error: &syn::Error) -> syn::Error {
    refusal(
        error.span(),
        format_args!("the value of `{option}` cannot be read: {error}"),
        format_args!("`{}`", option::example(option)),
        "what cannot be read cannot be promised",
    )
}

/// Cuts at the commas outside brackets. Empty pieces are trailing commas and the like.
pub(crate) fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut chunks = vec![TokenStream::new()];
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => chunks.push(TokenStream::new()),
            token => chunks.last_mut().into_iter().for_each(|chunk| chunk.extend([token.clone()])),
        }
    }
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}
