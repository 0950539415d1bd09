//! Key parts and the like: native expressions, or expressions in a string literal.

use proc_macro2::Span;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, LitStr, Token, parenthesized, token};

/// Reads `(a, b)`, `= (a, b)`, `= a` or `= "a, b"`.
pub(crate) fn parts(input: ParseStream<'_>) -> syn::Result<Vec<Expr>> {
    if input.peek(token::Paren) {
        let content;
        parenthesized!(content in input);
        return list(&content);
    }
    input.parse::<Token![=]>()?;
    if input.peek(LitStr) {
        return in_literal(&input.parse()?, list);
    }
    Ok(match input.parse()? {
        Expr::Tuple(tuple) => tuple.elems.into_iter().collect(),
        Expr::Paren(paren) => vec![*paren.expr],
        part => vec![part],
    })
}

/// Reads one expression, native or in a string literal.
pub(crate) fn one(input: ParseStream<'_>) -> syn::Result<Expr> {
    if input.peek(LitStr) { in_literal(&input.parse()?, expression) } else { expression(input) }
}

fn expression(input: ParseStream<'_>) -> syn::Result<Expr> {
    input.parse()
}

fn list(input: ParseStream<'_>) -> syn::Result<Vec<Expr>> {
    Ok(Punctuated::<Expr, Token![,]>::parse_terminated(input)?.into_iter().collect())
}

/// The tokens get a span that resolves at the call site and lies on the literal. With the literal's own, rustc would
/// offer to replace the whole literal with one misspelt field's correction.
fn in_literal<T>(literal: &LitStr, parser: impl Fn(ParseStream<'_>) -> syn::Result<T>) -> syn::Result<T> {
    let span = Span::call_site().located_at(literal.span());
    let parser = |input: ParseStream<'_>| parser(input);
    Parser::parse2(parser, LitStr::new(&literal.value(), span).parse()?)
}
