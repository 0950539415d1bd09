//! What the attribute says: every option with its value, and with its place in the source.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{Expr, LitStr, Path};

use crate::diag::Errors;
use crate::handler::Handler;
use crate::option::{Arg, Value, meant};

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

/// One way in which the event can come again, as written.
pub(crate) struct WindowArg {
    pub(crate) source: Ident,
    pub(crate) length: RetentionArg,
}

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) key: Option<Given<Vec<Expr>>>,
    pub(crate) retention: Option<Given<RetentionArg>>,
    pub(crate) redelivery: Option<Given<Vec<WindowArg>>>,
    pub(crate) name: Option<Given<LitStr>>,
    pub(crate) occurred_at: Option<Given<Expr>>,
    pub(crate) fingerprint: Option<Given<Vec<Expr>>>,
    pub(crate) replay: Option<Given<()>>,
    pub(crate) krate: Option<Given<Path>>,
    /// The options that are there but could not be read. They are not missing.
    unread: Vec<&'static str>,
}

impl Args {
    /// Reads option by option, so that a mistake in one leaves the others readable.
    pub(crate) fn read(tokens: TokenStream, errors: &Errors) -> Self {
        let mut args = Self::default();
        for chunk in split_at_commas(tokens) {
            match syn::parse2::<Arg>(chunk.clone()) {
                Ok(arg) => args.put(arg, errors),
                Err(error) => {
                    args.unread.extend(mentioned(chunk));
                    errors.push(error);
                }
            }
        }
        args
    }

    fn put(&mut self, Arg { option, value }: Arg, errors: &Errors) {
        let at = &option;
        match value {
            Value::Key(value) => set(&mut self.key, at, value, errors),
            Value::Retention(value) => set(&mut self.retention, at, value, errors),
            Value::Redelivery(value) => set(&mut self.redelivery, at, value, errors),
            Value::Name(value) => set(&mut self.name, at, value, errors),
            Value::OccurredAt(value) => set(&mut self.occurred_at, at, value, errors),
            Value::Fingerprint(value) => set(&mut self.fingerprint, at, value, errors),
            Value::Replay => set(&mut self.replay, at, (), errors),
            Value::Crate(value) => set(&mut self.krate, at, value, errors),
        }
    }

    pub(crate) fn lacks_key(&self) -> bool {
        self.key.is_none() && !self.unread.contains(&"key")
    }

    pub(crate) fn lacks_retention(&self) -> bool {
        self.retention.is_none() && !self.unread.contains(&"retention")
    }

    /// The declared ways in which the event can come again.
    pub(crate) fn windows(&self) -> impl Iterator<Item = &WindowArg> {
        self.redelivery.iter().flat_map(|given| &given.value)
    }

    /// The handler's name: the given one, or the function's own.
    pub(crate) fn name_of(&self, handler: &Handler) -> String {
        self.name.as_ref().map_or_else(|| handler.plain_name(), |name| name.value.value())
    }

    /// Every expression over the handler's parameters.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let lists = self.key.iter().chain(&self.fingerprint).flat_map(|given| &given.value);
        lists.chain(self.occurred_at.iter().map(|given| &given.value))
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

/// The options that a piece which cannot be read was meant to give. A value without a name is mostly the key.
fn mentioned(chunk: TokenStream) -> impl Iterator<Item = &'static str> {
    chunk.into_iter().enumerate().filter_map(|(index, token)| match token {
        TokenTree::Ident(word) => meant(&word.to_string()),
        TokenTree::Literal(_) if index == 0 => Some("key"),
        _ => None,
    })
}

/// Cuts at the commas outside brackets. Empty pieces are trailing commas and the like.
fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
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
