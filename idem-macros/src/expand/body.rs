//! The user's body, in its own words, and the type that it belongs to.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{ExprPath, FnArg, PatIdent, Signature, Token, parse_quote};

use super::Declaration;
use crate::handler::Handler;

impl Declaration<'_> {
    /// The type under the function's name, with the key and the plain body.
    pub(super) fn ty(&self) -> TokenStream {
        let Handler { vis, sig, .. } = self.handler;
        let (name, quiet, key) = (&sig.ident, self.quiet(), self.key_fn());
        let doc = format!("The handler `{}` as a type: its key, its plain body, and what consumers run.", sig.ident);
        let body = self.body(
            Ident::new("apply_in", sig.ident.span()),
            "The handler's body, in a transaction of the caller's: no key, no commit. For tests.",
        );
        quote! {
            #[doc = #doc]
            #[allow(non_camel_case_types)]
            #vis enum #name {}

            #quiet
            impl #name {
                #key
                #body
            }
        }
    }

    /// The plain body beside a method.
    pub(super) fn body_beside(&self) -> TokenStream {
        let name = self.handler.name();
        let doc = format!("The body of `{name}`, in a transaction of the caller's: no key, no commit. For tests.");
        self.body(self.body_beside_name(), &doc)
    }

    fn body_beside_name(&self) -> Ident {
        let name = self.handler.name();
        Ident::new(&format!("{}_in", name.unraw()), name.span())
    }

    /// What the wrapper calls.
    pub(super) fn body_path(&self) -> TokenStream {
        if self.handler.receiver().is_none() {
            return self.item("apply_in");
        }
        let name = self.body_beside_name();
        quote!(Self::#name)
    }

    fn body(&self, name: Ident, doc: &str) -> TokenStream {
        let Handler { vis, body, .. } = self.handler;
        let (attrs, quiet, mut sig) = (self.body_attrs(), self.quiet(), self.body_signature());
        sig.ident = name;
        quote! {
            #[doc = #doc]
            #(#attrs)*
            #quiet
            #[allow(clippy::missing_errors_doc)]
            #vis #sig #body
        }
    }

    /// The signature as written. Its `async` is ours: that keeps the compiler from reporting the body of an unused
    /// handler beside the handler, and the awaits of a function that lacks it from being errors beside the refusal. A
    /// parameter that only the key reads is not unused.
    fn body_signature(&self) -> Signature {
        let mut read = Names::default();
        self.args.expressions().for_each(|expr| read.visit_expr(expr));
        let mut sig = self.handler.sig.clone();
        sig.asyncness = Some(Token![async](Span::mixed_site()));
        for input in &mut sig.inputs {
            if let FnArg::Typed(typed) = input {
                let mut bound = Names::default();
                bound.visit_pat(&typed.pat);
                if !bound.0.is_disjoint(&read.0) {
                    typed.attrs.push(parse_quote!(#[allow(unused_variables)]));
                }
            }
        }
        sig
    }
}

/// The variables that an expression reads, or that a pattern binds.
#[derive(Default)]
struct Names(HashSet<Ident>);

impl<'ast> Visit<'ast> for Names {
    fn visit_expr_path(&mut self, expr: &'ast ExprPath) {
        self.0.extend(expr.path.get_ident().cloned());
    }

    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.0.insert(pat.ident.clone());
        syn::visit::visit_pat_ident(self, pat);
    }
}
