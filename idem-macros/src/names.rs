//! The variables that expressions read and patterns bind.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, Pat, PatIdent};

use crate::diag::did_you_mean;

/// The variables that an expression reads.
pub(crate) fn read(expr: &Expr) -> BTreeSet<String> {
    let names = Names::of(expr);
    names.read.iter().chain(&names.passed).map(Ident::to_string).collect()
}

/// The variables that a pattern binds.
pub(crate) fn bound(pat: &Pat) -> BTreeSet<Ident> {
    let mut names = Names::default();
    names.visit_pat(pat);
    names.bound
}

/// Lets the variables of an expression mean those of the same name. Inside a `macro_rules!` a name in a string, and the
/// parameter of that name, can come from two places, which hygiene would keep apart.
pub(crate) fn bind(expr: &mut Expr, bound: &BTreeSet<Ident>) {
    struct Bind<'a>(&'a BTreeSet<Ident>);
    impl VisitMut for Bind<'_> {
        fn visit_expr_path_mut(&mut self, expr: &mut ExprPath) {
            let bound = expr.path.get_ident().and_then(|name| self.0.get(name));
            if let (Some(bound), Some(segment)) = (bound, expr.path.segments.last_mut()) {
                segment.ident.set_span(segment.ident.span().resolved_at(bound.span()));
            }
        }
    }
    Bind(bound).visit_expr_mut(expr);
}

/// A variable that an expression reads, although nobody binds it.
pub(crate) fn unknown(expr: &Expr, known: &BTreeSet<String>) -> Option<Ident> {
    let names = Names::of(expr);
    let is_known = |name: &Ident| {
        let text = name.to_string();
        let is_constant = text.contains(char::is_uppercase);
        is_constant || text == "self" || known.contains(&text) || names.bound.contains(name)
    };
    let is_slip = |name: &Ident| did_you_mean(&name.to_string(), known.iter().map(String::as_str)).is_some();
    let mut read = names.read.iter().filter(|name| !is_known(name));
    let mut passed = names.passed.iter().filter(|name| !is_known(name) && is_slip(name));
    read.next().or_else(|| passed.next()).cloned()
}

#[derive(Default)]
struct Names {
    read: Vec<Ident>,
    /// Passed to a function, and perhaps functions themselves.
    passed: Vec<Ident>,
    bound: BTreeSet<Ident>,
}

impl Names {
    fn of(expr: &Expr) -> Self {
        let mut names = Self::default();
        names.visit_expr(expr);
        names
    }

    fn visit_argument(&mut self, argument: &Expr) {
        match argument {
            Expr::Path(path) => self.passed.extend(path.path.get_ident().cloned()),
            other => self.visit_expr(other),
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_expr_path(&mut self, expr: &'ast ExprPath) {
        self.read.extend(expr.path.get_ident().cloned());
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        // A plain name that is called is a function.
        if !matches!(&*call.func, Expr::Path(_)) {
            self.visit_expr(&call.func);
        }
        call.args.iter().for_each(|argument| self.visit_argument(argument));
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.visit_expr(&call.receiver);
        call.args.iter().for_each(|argument| self.visit_argument(argument));
    }

    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.bound.insert(pat.ident.clone());
        visit::visit_pat_ident(self, pat);
    }
}
