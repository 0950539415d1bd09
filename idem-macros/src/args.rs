//! What the attribute says: every option with its value, and with its place in the source.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{Expr, LitStr, Path};

use crate::diag::Errors;
use crate::handler::Handler;
use crate::names;
use crate::option::meant;
use crate::semantics::Semantics;
use crate::value::{AllowArg, Arg, ExternalArg, Length, Value, WindowArg, split_at_commas};

/// An option's value, and where its name stands.
pub(crate) struct Given<T> {
    pub(crate) option: Span,
    pub(crate) value: T,
}

/// What the attribute says.
pub(crate) struct Args {
    pub(crate) semantics: Semantics,
    pub(crate) key: Option<Given<Vec<Expr>>>,
    pub(crate) retention: Option<Given<Length>>,
    pub(crate) redelivery: Option<Given<Vec<WindowArg>>>,
    pub(crate) policy: Option<Given<Expr>>,
    pub(crate) name: Option<Given<LitStr>>,
    pub(crate) occurred_at: Option<Given<Expr>>,
    pub(crate) fingerprint: Option<Given<Vec<Expr>>>,
    /// Parts that were refused. They are printed, so that an editor can complete them, and their types are not judged.
    pub(crate) refused_parts: Vec<Expr>,
    pub(crate) replay: Option<Given<()>>,
    /// The function that applies many messages at once.
    pub(crate) batch: Option<Given<Path>>,
    pub(crate) external: Vec<Given<ExternalArg>>,
    pub(crate) allow: Vec<Given<AllowArg>>,
    pub(crate) reason: Option<Given<LitStr>>,
    pub(crate) loss: Option<Given<LitStr>>,
    pub(crate) krate: Option<Given<Path>>,
    /// The options that are there but could not be read. They are not missing.
    unread: Vec<&'static str>,
}

impl Args {
    /// Reads option by option, so that a mistake in one leaves the others readable.
    pub(crate) fn read(semantics: Semantics, tokens: TokenStream, errors: &Errors) -> Self {
        let mut args = Self::none(semantics);
        for chunk in split_at_commas(tokens) {
            match Arg::read(chunk.clone(), semantics) {
                Ok(arg) => args.put(arg, errors),
                Err(error) => {
                    args.unread.extend(mentioned(chunk, semantics));
                    errors.push(error);
                }
            }
        }
        args
    }

    fn none(semantics: Semantics) -> Self {
        Self {
            semantics,
            key: None,
            retention: None,
            redelivery: None,
            policy: None,
            name: None,
            occurred_at: None,
            fingerprint: None,
            refused_parts: Vec::new(),
            replay: None,
            batch: None,
            external: Vec::new(),
            allow: Vec::new(),
            reason: None,
            loss: None,
            krate: None,
            unread: Vec::new(),
        }
    }

    fn put(&mut self, Arg { option, value }: Arg, errors: &Errors) {
        let at = &option;
        match value {
            Value::Key(value) => set(&mut self.key, at, value, errors),
            Value::Retention(value) => set(&mut self.retention, at, value, errors),
            Value::Redelivery(value) => set(&mut self.redelivery, at, value, errors),
            Value::Policy(value) => set(&mut self.policy, at, value, errors),
            Value::Name(value) => set(&mut self.name, at, value, errors),
            Value::OccurredAt(value) => set(&mut self.occurred_at, at, value, errors),
            Value::Fingerprint(value) => set(&mut self.fingerprint, at, value, errors),
            Value::Replay => set(&mut self.replay, at, (), errors),
            Value::Batch(value) => set(&mut self.batch, at, value, errors),
            Value::External(value) => self.external.push(Given { option: at.span(), value }),
            Value::Allow(value) => self.allow.push(Given { option: at.span(), value }),
            Value::Reason(value) => set(&mut self.reason, at, value, errors),
            Value::Loss(value) => set(&mut self.loss, at, value, errors),
            Value::Crate(value) => set(&mut self.krate, at, value, errors),
        }
    }

    /// Whether an option is there, although it could not be read.
    pub(crate) fn mentions(&self, option: &str) -> bool {
        self.unread.contains(&option)
    }

    /// The declared ways in which the event can come again.
    pub(crate) fn windows(&self) -> impl Iterator<Item = &WindowArg> {
        self.redelivery.iter().flat_map(|given| &given.value)
    }

    /// The handler's name: the given one, or the function's own.
    pub(crate) fn name_of(&self, handler: &Handler) -> String {
        self.name.as_ref().map_or_else(|| handler.plain_name(), |name| name.value.value())
    }

    /// Lets the expressions read the handler's parameters, wherever a `macro_rules!` has their names from.
    pub(crate) fn bind(&mut self, parameters: &BTreeSet<Ident>) {
        let lists = self.key.iter_mut().chain(&mut self.fingerprint).flat_map(|given| &mut given.value);
        let time = self.occurred_at.iter_mut().map(|given| &mut given.value);
        lists.chain(time).for_each(|expr| names::bind(expr, parameters));
    }

    /// Every expression over the handler's parameters.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let lists = self.key.iter().chain(&self.fingerprint).flat_map(|given| &given.value);
        lists.chain(self.occurred_at.iter().map(|given| &given.value))
    }
}

fn set<T>(slot: &mut Option<Given<T>>, option: &Ident, value: T, errors: &Errors) {
    if slot.is_some() {
        refuse_given_twice(option, errors);
    } else {
        *slot = Some(Given { option: option.span(), value });
    }
}

/// One decision has one value.
fn refuse_given_twice(option: &Ident, errors: &Errors) {
    errors.refuse(
        option.span(),
        format_args!("`{option}` is given twice"),
        format_args!("remove this `{option}`"),
        "two values for one decision: neither can be right without the other being wrong",
    );
}

/// The options that a piece which cannot be read was meant to give. A value without a name is mostly the key.
fn mentioned(chunk: TokenStream, semantics: Semantics) -> impl Iterator<Item = &'static str> {
    chunk.into_iter().enumerate().filter_map(move |(index, token)| match token {
        TokenTree::Ident(word) => meant(&word.to_string(), semantics),
        TokenTree::Literal(_) if index == 0 => Some("key"),
        _ => None,
    })
}
