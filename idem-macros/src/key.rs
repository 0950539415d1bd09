//! Key parts and the like: native expressions, or expressions in a string literal.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Member, Token, parenthesized, token};

use crate::diag::refusal;

/// Reads `(a, b)`, `= (a, b)`, `= a` or `= "a, b"`.
pub(crate) fn parts(input: ParseStream<'_>) -> syn::Result<Vec<Expr>> {
    if input.peek(token::Paren) {
        let content;
        parenthesized!(content in input);
        return list(&content).map_err(|error| refuse_unreadable_key(&error));
    }
    input.parse::<Token![=]>()?;
    if input.peek(LitStr) {
        return in_literal(&input.parse()?, list);
    }
    Ok(match ungrouped(input.parse().map_err(|error| refuse_unreadable_key(&error))?) {
        Expr::Tuple(tuple) => tuple.elems.into_iter().collect(),
        Expr::Paren(paren) => vec![*paren.expr],
        part => vec![part],
    })
}

fn refuse_unreadable_key(error: &syn::Error) -> syn::Error {
    refusal(
        error.span(),
        format_args!("this is no list of expressions: {error}"),
        "`key(msg.order_id, msg.kind)`",
        "each part is an expression over the handler's parameters",
    )
}

/// Reads one expression, native or in a string literal.
pub(crate) fn one(input: ParseStream<'_>) -> syn::Result<Expr> {
    if input.peek(LitStr) { in_literal(&input.parse()?, expression) } else { expression(input) }
}

/// Where a part is underlined: at its last name. The compiler gives a macro no more than the first token of `a.b.c`.
pub(crate) fn place(part: &Expr) -> Span {
    match part {
        Expr::Field(field) => match &field.member {
            Member::Named(name) => name.span(),
            Member::Unnamed(index) => index.span,
        },
        Expr::MethodCall(call) => call.method.span(),
        Expr::Call(call) => place(&call.func),
        Expr::Path(path) => path.path.segments.last().map_or_else(Span::call_site, |last| last.ident.span()),
        Expr::Reference(inner) => place(&inner.expr),
        Expr::Paren(inner) => place(&inner.expr),
        Expr::Group(inner) => place(&inner.expr),
        Expr::Cast(inner) => place(&inner.expr),
        part => part.span(),
    }
}

fn expression(input: ParseStream<'_>) -> syn::Result<Expr> {
    input.parse()
}

/// Reads parts up to the end. Nothing but commas is an empty list, of which `check` has more to say than a parser.
fn list(input: ParseStream<'_>) -> syn::Result<Vec<Expr>> {
    let rest: TokenStream = input.fork().parse()?;
    if rest.into_iter().all(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')) {
        input.parse::<TokenStream>()?;
        return Ok(Vec::new());
    }
    Ok(Punctuated::<Expr, Token![,]>::parse_terminated(input)?.into_iter().collect())
}

/// What a `macro_rules!` was given as an expression, without the invisible brackets around it.
fn ungrouped(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) => ungrouped(*group.expr),
        expr => expr,
    }
}

/// The tokens get a span that resolves at the call site and lies on the literal. With the literal's own, rustc would
/// offer to replace the whole literal with one misspelt field's correction.
fn in_literal<T>(literal: &LitStr, parser: impl Fn(ParseStream<'_>) -> syn::Result<T>) -> syn::Result<T> {
    let span = Span::call_site().located_at(literal.span());
    let parser = |input: ParseStream<'_>| parser(input);
    let tokens = LitStr::new(&literal.value(), span).parse::<TokenStream>();
    tokens.and_then(|tokens| parser.parse2(tokens)).map_err(|error| {
        refusal(
            span,
            format_args!("`{}` cannot be read as Rust: {error}", literal.value()),
            "write expressions over the parameters, as in \"msg.order_id, msg.kind\"",
            "written without the quotes, as in `key(msg.order_id)`, the compiler points at the very place",
        )
    })
}
