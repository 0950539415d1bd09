//! The words in a part that say what its value is.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprField, ExprIndex, ExprLit, ExprMethodCall, ExprPath, Lit, Member};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A field, a parameter, or a text that picks a value.
    Name,
    Method,
    /// A step of the path of a function that is called.
    Function,
}

pub(super) struct Word {
    pub(super) text: String,
    pub(super) written: String,
    pub(super) at: Span,
    pub(super) kind: Kind,
    /// Whether it names the part's value, and not what that is made from.
    pub(super) is_value: bool,
}

/// The words of a part that say what its value is, or what it is made from.
pub(super) struct Words {
    list: Vec<Word>,
    is_value: bool,
}

impl Words {
    pub(super) fn of(part: &Expr) -> Self {
        let mut words = Self { list: Vec::new(), is_value: true };
        words.visit_expr(part);
        words
    }

    fn push(&mut self, written: String, at: Span, kind: Kind) {
        self.list.push(Word { text: snake(&written), written, at, kind, is_value: self.is_value });
    }

    /// The first word of a list, if it is meant.
    pub(super) fn find_in(&self, list: &str, is_meant: impl Fn(&Word) -> bool) -> Option<&Word> {
        self.first(|word| is_meant(word) && is_in(&word.text, list))
    }

    pub(super) fn first(&self, is_meant: impl Fn(&Word) -> bool) -> Option<&Word> {
        self.list.iter().find(|word| is_meant(word))
    }

    fn visit_source(&mut self, visit: impl FnOnce(&mut Self)) {
        let was_value = std::mem::replace(&mut self.is_value, false);
        visit(self);
        self.is_value = was_value;
    }

    /// A text that is passed or indexed with picks a value, as in `msg.headers["x-retry-count"]`.
    fn visit_pick(&mut self, expr: &Expr) {
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => self.push(text.value(), text.span(), Kind::Name),
            expr => self.visit_expr(expr),
        }
    }
}

impl<'ast> Visit<'ast> for Words {
    /// The last field says what the value is; the ones on the way there do not.
    fn visit_expr_field(&mut self, field: &'ast ExprField) {
        if let Member::Named(name) = &field.member {
            self.push(name.to_string(), name.span(), Kind::Name);
        }
        let mut base = &*field.base;
        while let Expr::Field(inner) = base {
            base = &inner.base;
        }
        if !matches!(base, Expr::Path(_)) {
            self.visit_expr(base);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.push(call.method.to_string(), call.method.span(), Kind::Method);
        if hands_on(call) {
            self.visit_expr(&call.receiver);
        } else if !matches!(&*call.receiver, Expr::Path(_)) {
            self.visit_source(|words| words.visit_expr(&call.receiver));
        }
        self.visit_source(|words| call.args.iter().for_each(|argument| words.visit_pick(argument)));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            // `serde_json::from_str` reads, and what it reads is its argument's business.
            let reads = path.path.segments.last().is_some_and(|last| last.ident.to_string().starts_with("from_"));
            for segment in path.path.segments.iter().filter(|_| !reads) {
                self.push(segment.ident.to_string(), segment.ident.span(), Kind::Function);
            }
        } else {
            self.visit_expr(&call.func);
        }
        self.visit_source(|words| call.args.iter().for_each(|argument| words.visit_pick(argument)));
    }

    fn visit_expr_index(&mut self, index: &'ast ExprIndex) {
        self.visit_source(|words| words.visit_expr(&index.expr));
        self.visit_pick(&index.index);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.push(name.to_string(), name.span(), Kind::Name);
        }
        visit::visit_expr_path(self, path);
    }
}

/// Whether a list, with spaces between, holds the word.
pub(super) fn is_in(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Whether the method returns the value that it is called on, in another form.
pub(super) fn hands_on(call: &ExprMethodCall) -> bool {
    is_in(&call.method.to_string(), "clone to_string to_owned as_str as_ref borrow into deref trim as_bytes to_vec")
}

/// `deliveryTag`, `X-Delivery-Tag` and `delivery_tag` are one word.
pub(super) fn snake(written: &str) -> String {
    let (mut snake, mut after_lower) = (String::new(), false);
    for c in written.chars() {
        if c.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        snake.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    snake.strip_prefix("x_").map(str::to_owned).unwrap_or(snake)
}

#[cfg(test)]
mod tests {
    #[test]
    fn spellings_of_one_word_are_one_word() {
        for written in ["delivery_tag", "deliveryTag", "X-Delivery-Tag", "DELIVERY_TAG", "DeliveryTag"] {
            assert_eq!(super::snake(written), "delivery_tag", "{written}");
        }
    }
}
