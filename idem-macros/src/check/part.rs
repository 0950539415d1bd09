//! What form a part of the key has.

use proc_macro2::Span;
use syn::Expr;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::key::{List, Place};
use crate::diag::Errors;
use crate::key::place;

/// Whether the part has a form that can be printed into the key's function.
pub(super) fn refuse(part: &Expr, at: Place<'_>, errors: &Errors) -> bool {
    // A time is often given as a number of seconds: `UNIX_EPOCH + Duration::from_secs(msg.at)`.
    let mut find = Find { adds_up: at.list == List::OccurredAt, ..Find::default() };
    find.visit_expr(part);
    if let Some((name, span)) = find.macro_call {
        refuse_macro_in_key(&name, span, at, errors);
    } else if let Some(span) = find.question_mark {
        refuse_question_mark(span, at, errors);
    } else if let Some(span) = find.awaited {
        refuse_await(span, at, errors);
    } else if let Some(computed) = find.computed {
        refuse_computed_part(&computed, at, errors);
    } else {
        return true;
    }
    false
}

/// Text that runs together: `format!("{}{}", a, b)` is the same for (1, 11) and (11, 1).
fn refuse_macro_in_key(name: &str, span: Span, at: Place<'_>, errors: &Errors) {
    errors.refuse(
        span,
        format_args!("`{name}!` cannot be part of {}{at}", at.list),
        format_args!("give its inputs as parts of their own: `{}`", at.list.example()),
        "parts stay apart, while text that is put together does not: 1 and 11 read like 11 and 1",
    );
}

/// There is no error that a key could return.
fn refuse_question_mark(span: Span, at: Place<'_>, errors: &Errors) {
    errors.refuse(
        span,
        format_args!("`?` cannot stand in {}{at}", at.list),
        format_args!("decode before the handler, and give the message a field: `{}`", at.list.example()),
        "a message whose key cannot be read is malformed, and belongs in the dead letters before a handler sees it",
    );
}

/// What has to be asked for may answer differently next time.
fn refuse_await(span: Span, at: Place<'_>, errors: &Errors) {
    errors.refuse(
        span,
        format_args!("`.await` cannot stand in {}{at}", at.list),
        format_args!("name a field of the message: `{}`", at.list.example()),
        "what has to be asked for may be answered differently for the redelivery",
    );
}

/// The catalog prints the key, and a reader must see at a glance what it is made of.
fn refuse_computed_part(computed: &Computed, at: Place<'_>, errors: &Errors) {
    let Computed { what, joins, at: span } = *computed;
    let example = at.list.example();
    let (help, why) = if joins {
        (
            format!("give both as parts of their own: `{example}`"),
            "parts stay apart, while a value that is made of two does not: 1 + 2 is 2 + 1",
        )
    } else {
        (
            format!("a field, a method or a function call, or a literal: `{example}`"),
            "it is printed in the catalog, and what it is made of has to be seen there at a glance",
        )
    };
    errors.refuse(span, format_args!("{what} cannot be part of {}{at}", at.list), help, why);
}

/// What is neither a field, a call nor a literal.
struct Computed {
    what: &'static str,
    /// Whether it makes one value of several.
    joins: bool,
    at: Span,
}

/// The first of each kind of thing that a part must not hold.
#[derive(Default)]
struct Find {
    /// Whether operations are allowed.
    adds_up: bool,
    macro_call: Option<(String, Span)>,
    question_mark: Option<Span>,
    awaited: Option<Span>,
    computed: Option<Computed>,
}

impl<'ast> Visit<'ast> for Find {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        let computed = match expr {
            Expr::Macro(call) => {
                let name = call.mac.path.segments.last().map(|last| &last.ident);
                let name = name.map(|name| (name.to_string(), name.span()));
                self.macro_call = self.macro_call.take().or(name);
                return;
            }
            Expr::Try(expr) => {
                self.question_mark.get_or_insert(expr.question_token.span());
                None
            }
            Expr::Await(expr) => {
                self.awaited.get_or_insert(expr.await_token.span());
                None
            }
            Expr::Field(_)
            | Expr::MethodCall(_)
            | Expr::Call(_)
            | Expr::Lit(_)
            | Expr::Path(_)
            | Expr::Reference(_)
            | Expr::Unary(_)
            | Expr::Cast(_)
            | Expr::Index(_)
            // As an index: `&msg.number[..8]`. By itself its type is refused.
            | Expr::Range(_)
            | Expr::Paren(_)
            | Expr::Group(_) => None,
            Expr::Binary(_) if self.adds_up => None,
            Expr::Binary(_) => Some("an operation"),
            Expr::Closure(_) => Some("a closure"),
            Expr::If(_) => Some("an `if`"),
            Expr::Match(_) => Some("a `match`"),
            Expr::Tuple(_) => Some("a tuple"),
            Expr::Array(_) | Expr::Repeat(_) => Some("an array"),
            Expr::Struct(_) => Some("a value that is made here"),
            Expr::Assign(_) => Some("an assignment"),
            _ => Some("a block or statement"),
        };
        if let Some(what) = computed {
            // The place is narrower than the expression, of which the compiler gives no more than the first token.
            let at = if let Expr::Binary(binary) = expr { binary.op.span() } else { place(expr) };
            let joins = matches!(expr, Expr::Binary(_) | Expr::Tuple(_) | Expr::Array(_));
            self.computed.get_or_insert(Computed { what, joins, at });
        }
        visit::visit_expr(self, expr);
    }
}
