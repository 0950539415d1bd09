//! The annotated function, taken apart. No judgement here: what is not as it should be is left out.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, FnArg, GenericParam, Pat, PatType, Receiver, ReceiverKind, ReturnType, Signature, Type, TypeReference,
    Visibility,
};

use crate::diag::Errors;
use crate::names;
use crate::semantics::Semantics;

/// What is known of the function.
pub(crate) struct Handler {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// Whether the first parameter is meant to be the engine's transaction.
    pub(crate) has_transaction: bool,
    /// The body with its braces, unread: half-typed bodies must not break completion in an editor.
    pub(crate) body: Group,
}

/// A parameter behind the transaction.
pub(crate) struct Param<'a> {
    /// What the wrapper calls it.
    pub(crate) ident: Ident,
    /// The pattern as written.
    pub(crate) pat: &'a Pat,
    /// The type as written.
    pub(crate) ty: &'a Type,
}

impl Param<'_> {
    /// The type behind a shared reference; `None` for a parameter that is moved.
    pub(crate) fn borrowed(&self) -> Option<&Type> {
        match bare(self.ty) {
            Type::Reference(TypeReference { mutability: None, elem, .. }) => Some(elem),
            _ => None,
        }
    }
}

/// The same, to be mended.
pub(crate) fn bare_mut(ty: &mut Type) -> &mut Type {
    match ty {
        Type::Group(group) => bare_mut(&mut group.elem),
        Type::Paren(paren) => bare_mut(&mut paren.elem),
        ty => ty,
    }
}

/// A type without the brackets around it, and without the invisible ones around what a `macro_rules!` was given.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}

impl Handler {
    /// Reads a function. Anything else is an error at its place.
    pub(crate) fn read(semantics: Semantics, item: TokenStream, errors: &Errors) -> Option<Self> {
        match syn::parse2::<Self>(item) {
            Ok(handler) => Some(Self { has_transaction: semantics.has_transaction(), ..handler }),
            Err(error) => {
                refuse_no_function(&error, errors);
                None
            }
        }
    }

    pub(crate) fn name(&self) -> &Ident {
        &self.sig.ident
    }

    /// The name without `r#`.
    pub(crate) fn plain_name(&self) -> String {
        self.name().unraw().to_string()
    }

    pub(crate) fn receiver(&self) -> Option<&Receiver> {
        self.sig.receiver()
    }

    /// Whether the receiver is a shared reference, which can be copied into every run.
    pub(crate) fn borrows_receiver(&self) -> bool {
        match self.receiver().map(|receiver| &receiver.kind) {
            Some(ReceiverKind::Reference(_, _, mutability)) => mutability.is_none(),
            Some(ReceiverKind::Typed(_, ty)) => matches!(&**ty, Type::Reference(ty) if ty.mutability.is_none()),
            _ => false,
        }
    }

    /// The parameters without the receiver.
    pub(crate) fn typed(&self) -> impl Iterator<Item = &PatType> {
        self.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        })
    }

    /// The type behind the first parameter's `&mut`.
    pub(crate) fn transaction(&self) -> Option<&Type> {
        match bare(&self.typed().next()?.ty) {
            Type::Reference(TypeReference { mutability: Some(_), elem, .. }) if self.has_transaction => Some(elem),
            _ => None,
        }
    }

    /// The same, to be mended.
    pub(crate) fn transaction_mut(&mut self) -> Option<&mut Type> {
        let first = self.sig.inputs.iter_mut().find_map(|input| match input {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        });
        match bare_mut(&mut first?.ty) {
            Type::Reference(TypeReference { mutability: Some(_), elem, .. }) if self.has_transaction => Some(elem),
            _ => None,
        }
    }

    /// Whether it is a function of an `impl` without `self`, as far as the word `Self` gives that away.
    pub(crate) fn is_associated(&self) -> bool {
        self.receiver().is_none() && (says_self(self.sig.to_token_stream()) || says_self(self.body.stream()))
    }

    /// The first parameter, whatever it is.
    pub(crate) fn first(&self) -> Option<&PatType> {
        self.typed().next()
    }

    /// The parameters behind the transaction, if there is one.
    fn behind_transaction(&self) -> impl Iterator<Item = &PatType> {
        self.typed().skip(usize::from(self.has_transaction))
    }

    /// The message, and what follows it.
    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        self.behind_transaction()
            .enumerate()
            .map(|(index, PatType { pat, ty, .. })| Param { ident: param_name(pat, index), pat, ty })
            .collect()
    }

    /// Every variable that the parameters behind the transaction bind.
    pub(crate) fn bindings(&self) -> BTreeSet<Ident> {
        self.behind_transaction().flat_map(|typed| names::bound(&typed.pat)).collect()
    }

    /// The return type as written.
    pub(crate) fn returned(&self) -> Option<&Type> {
        match &self.sig.output {
            ReturnType::Type(_, ty) => Some(ty),
            ReturnType::Default => None,
        }
    }

    /// The return type; `None` where it is plainly no `Result`. The compiler judges what can only be known of the
    /// type.
    pub(crate) fn output(&self) -> Option<&Type> {
        const NONE: [&str; 8] = ["bool", "i32", "i64", "u32", "u64", "usize", "String", "Option"];
        self.returned().filter(|ty| match bare(ty) {
            Type::Tuple(_) | Type::Reference(_) | Type::Never(_) => false,
            Type::Path(path) => {
                !path.path.segments.last().is_some_and(|last| NONE.iter().any(|name| last.ident == name))
            }
            _ => true,
        })
    }

    /// The names of the type and const parameters, which a call can spell out.
    pub(crate) fn generic_args(&self) -> Vec<&Ident> {
        self.sig
            .generics
            .params
            .iter()
            .filter_map(|param| match param {
                GenericParam::Type(param) => Some(&param.ident),
                GenericParam::Const(param) => Some(&param.ident),
                GenericParam::Lifetime(_) => None,
            })
            .collect()
    }
}

/// There is nothing to run.
fn refuse_no_function(error: &syn::Error, errors: &Errors) {
    errors.refuse(
        error.span(),
        "only a function with a body can be a handler",
        "`async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> { … }`",
        format_args!("reading it as a function failed: {error}"),
    );
}

/// Whether the word `Self` is there, outside of `impl` blocks of the body's own.
fn says_self(tokens: TokenStream) -> bool {
    let mut in_item = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => {
            in_item |= word == "impl" || word == "trait" || word == "struct" || word == "enum";
            word == "Self"
        }
        TokenTree::Group(group) => {
            let is_item = std::mem::take(&mut in_item) && group.delimiter() == Delimiter::Brace;
            !is_item && says_self(group.stream())
        }
        _ => false,
    })
}

/// A plain name is kept, so that the wrapper's documentation shows it; a pattern gets a name of ours.
fn param_name(pat: &Pat, index: usize) -> Ident {
    match pat {
        Pat::Ident(pat) if pat.subpat.is_none() => pat.ident.clone(),
        _ => Ident::new(&format!("__idem_arg{index}"), Span::mixed_site()),
    }
}

impl Parse for Handler {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let sig = input.parse()?;
        let body = input.call(body)?;
        Ok(Self { attrs, vis, sig, has_transaction: true, body })
    }
}

/// One group in braces. A `macro_rules!` hands a block on in invisible brackets.
fn body(input: ParseStream<'_>) -> syn::Result<Group> {
    let place = input.span();
    let mut token: TokenTree = input.parse()?;
    while let TokenTree::Group(group) = token {
        match group.delimiter() {
            Delimiter::Brace => return Ok(group),
            Delimiter::None => match group.stream().into_iter().next() {
                Some(inside) => token = inside,
                None => break,
            },
            _ => break,
        }
    }
    Err(syn::Error::new(place, "expected a body in braces"))
}
