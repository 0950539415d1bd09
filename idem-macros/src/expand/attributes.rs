//! Which of the user's attributes stands on which of the generated functions.

use syn::{Attribute, Expr, ExprLit, Lit};

use super::Declaration;

/// Speaks to whoever calls.
const FOR_CALLERS: [&str; 3] = ["doc", "must_use", "deprecated"];

/// Speaks of all code that comes of the function.
const LINTS: [&str; 4] = ["allow", "warn", "deny", "forbid"];

impl Declaration<'_> {
    /// Documentation, what speaks to callers, and lint levels.
    pub(super) fn caller_attrs(&self) -> impl Iterator<Item = &Attribute> {
        self.handler.attrs.iter().filter(|attr| is_one_of(attr, &FOR_CALLERS) || is_one_of(attr, &LINTS))
    }

    /// Lint levels, and whatever rewrites a function, such as `#[tracing::instrument]`: that means the body.
    pub(super) fn body_attrs(&self) -> impl Iterator<Item = &Attribute> {
        self.handler.attrs.iter().filter(|attr| !is_one_of(attr, &FOR_CALLERS))
    }

    /// Whether the user has marked the handler as deprecated.
    pub(super) fn is_deprecated(&self) -> bool {
        self.handler.attrs.iter().any(|attr| attr.path().is_ident("deprecated"))
    }

    /// The lines of the user's documentation.
    pub(super) fn doc_lines(&self) -> impl Iterator<Item = String> {
        self.handler.attrs.iter().filter_map(|attr| match &attr.meta.require_name_value().ok()?.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if attr.path().is_ident("doc") => Some(text.value()),
            _ => None,
        })
    }
}

fn is_one_of(attr: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attr.path().is_ident(name))
}
