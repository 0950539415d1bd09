//! `#[derive(KeyPart)]`. The stages are those of the attribute: `words` reads, `check` refuses, `expand` prints.

mod check;
mod expand;
#[cfg(test)]
mod tests;
mod words;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Field, Fields, Type};

use crate::diag::Errors;
use words::Words;

/// The derive on token streams, which unit tests can make.
pub(crate) fn key_part(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.to_compile_error(),
    };
    let errors = Errors::new();
    let words = Words::of(&item);
    check::refuse(&item, &words, &errors);
    match errors.finish() {
        None => expand::implementation(&item, &words),
        Some(refused) => {
            let mut tokens = refused.to_compile_error();
            tokens.extend(expand::refused(&item, &words));
            tokens
        }
    }
}

/// The fields that hold something, each with its place among all.
fn held(fields: &Fields) -> impl Iterator<Item = (usize, &Field)> {
    fields.iter().enumerate().filter(|(_, field)| !is_named(&field.ty, "PhantomData"))
}

fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        Type::Group(group) => is_named(&group.elem, name),
        Type::Paren(paren) => is_named(&paren.elem, name),
        _ => false,
    }
}
