//! What the function is, whatever it takes and returns.

use syn::spanned::Spanned;
use syn::{FnArg, Safety, Signature};

use crate::diag::Errors;
use crate::handler::Handler;
use crate::semantics::Semantics;

pub(super) fn refuse(handler: &mut Handler, errors: &Errors) {
    refuse_two_attributes(handler, errors);
    refuse_not_async(handler, errors);
    refuse_modifier(handler, errors);
    refuse_cfg_on_parameter(handler, errors);
    refuse_associated_function(handler, errors);
}

/// Each attribute makes the function another one.
fn refuse_two_attributes(handler: &mut Handler, errors: &Errors) {
    handler.attrs.retain(|attr| {
        let name = attr.path().segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let is_ours = Semantics::ALL.iter().any(|semantics| semantics.attribute() == name);
        if is_ours {
            errors.refuse(
                attr.path().span(),
                format_args!("this handler is declared twice: `#[{name}]` stands below another such attribute"),
                format_args!("remove one of the two"),
                "idempotent, at most once and naturally idempotent are three promises, and a handler keeps one",
            );
        }
        !is_ours
    });
}

/// The engine awaits the body inside its transaction.
fn refuse_not_async(handler: &Handler, errors: &Errors) {
    if handler.sig.asyncness.is_none() {
        errors.refuse(
            handler.sig.fn_token.span(),
            "a handler must be an `async fn`",
            format_args!("`async fn {}`", handler.name()),
            "the engine awaits it (an `#[async_trait]` above this attribute hides the `async`)",
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

/// The arguments of a call cannot be left out by a `cfg`, so that the wrapper could not call the body.
fn refuse_cfg_on_parameter(handler: &mut Handler, errors: &Errors) {
    for input in &mut handler.sig.inputs {
        let attrs = match input {
            FnArg::Typed(typed) => &mut typed.attrs,
            FnArg::Receiver(receiver) => &mut receiver.attrs,
        };
        attrs.retain(|attr| {
            let is_cfg = attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr");
            if is_cfg {
                errors.refuse(
                    attr.path().span(),
                    "a parameter of a handler cannot depend on a `cfg`",
                    "write two handlers with a `#[cfg(…)]` on each",
                    "the engine passes every parameter on to the body, and a call cannot leave one out",
                );
            }
            !is_cfg
        });
    }
}

/// Beside a free function stands a type of its name, for which an `impl` has no room; a method is known by its `self`.
/// Without either, only the word `Self` gives an associated function away.
fn refuse_associated_function(handler: &Handler, errors: &Errors) {
    if handler.is_associated() {
        errors.refuse(
            handler.name().span(),
            "an associated function without `self` cannot be a handler",
            format_args!("take `&self`, or move `{}` out of the `impl`", handler.name()),
            "beside a handler stands a type of its name, and an `impl` has no room for types",
        );
    }
}
