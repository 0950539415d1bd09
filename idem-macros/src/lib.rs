//! Implementation detail of [`idem-runtime`](https://docs.rs/idem-runtime): depend on that, and write
//! `use idem_runtime::idempotent;`.
//!
//! The stages, in this order: `args` and `handler` read, with `option`, `value`, `key` and `duration` for what stands
//! inside; `check` refuses; `expand` prints. `semantics` is which of the attributes it is, `diag` shapes messages, `text`
//! turns tokens back into text, `names` knows variables, `fallback` prints what is left after a refusal.

mod args;
mod check;
mod derive;
mod diag;
mod duration;
mod expand;
mod fallback;
mod handler;
mod key;
mod names;
mod option;
mod semantics;
#[cfg(test)]
mod tests;
mod text;
mod value;

use proc_macro2::TokenStream;

use crate::args::Args;
use crate::diag::Errors;
use crate::handler::Handler;
use crate::semantics::Semantics;

#[doc = include_str!("idempotent.md")]
#[proc_macro_attribute]
pub fn idempotent(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    transform(Semantics::Idempotent, args.into(), &item.into()).into()
}

#[doc = include_str!("at_most_once.md")]
#[proc_macro_attribute]
pub fn at_most_once(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    transform(Semantics::AtMostOnce, args.into(), &item.into()).into()
}

#[doc = include_str!("naturally_idempotent.md")]
#[proc_macro_attribute]
pub fn naturally_idempotent(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    transform(Semantics::NaturallyIdempotent, args.into(), &item.into()).into()
}

#[doc = include_str!("derive/key_part.md")]
#[proc_macro_derive(KeyPart, attributes(key))]
pub fn key_part(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derive::key_part(item.into()).into()
}

/// The attribute on token streams, which unit tests can make.
fn transform(semantics: Semantics, args: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let mut args = Args::read(semantics, args, &errors);
    let Some(mut handler) = Handler::read(semantics, item.clone(), &errors) else {
        return fallback::untouched(errors.finish(), item);
    };
    args.bind(&handler.bindings());
    check::refuse(&mut args, &mut handler, &errors);
    match errors.finish() {
        None => expand::handler(&args, &handler).unwrap_or_else(|| item.clone()),
        refused => fallback::refused(refused, &args, &handler, item),
    }
}
