//! The user's body, in its own words, and the type that it belongs to.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{FnArg, Signature, parse_quote};

use super::Declaration;
use crate::handler::Handler;
use crate::names;
use crate::semantics::Semantics;

impl Declaration<'_> {
    /// The type under the function's name, with the key and the plain body.
    pub(super) fn ty(&self) -> TokenStream {
        let Handler { vis, sig, .. } = self.handler;
        let (name, quiet) = (&sig.ident, self.quiet());
        let key = self.args.semantics.has_key().then(|| self.key_fn());
        let doc = format!("The handler `{}` as a type: what consumers run, and its plain body.", sig.ident);
        let body = self.body(Ident::new(self.body_name(), sig.ident.span()));
        quote! {
            #[doc = #doc]
            #[allow(non_camel_case_types, missing_copy_implementations, missing_debug_implementations)]
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
        let body = self.body(self.body_beside_name());
        // The compiler reports the unused methods of an `impl` together, or not at all if one of them is ours.
        quote!(#[allow(dead_code)] #body)
    }

    /// `_in` marks what takes an open transaction.
    fn body_name(&self) -> &'static str {
        if self.args.semantics.has_transaction() { "apply_in" } else { "apply" }
    }

    fn body_beside_name(&self) -> Ident {
        let name = self.handler.name();
        let suffix = if self.args.semantics.has_transaction() { "in" } else { "apply" };
        Ident::new(&format!("{}_{suffix}", name.unraw()), name.span())
    }

    /// What the wrapper calls.
    pub(super) fn body_path(&self) -> TokenStream {
        if self.handler.receiver().is_none() {
            return self.item(self.body_name());
        }
        let name = self.body_beside_name();
        quote!(Self::#name)
    }

    fn body(&self, name: Ident) -> TokenStream {
        let Handler { vis, body, .. } = self.handler;
        let doc = match self.args.semantics {
            Semantics::AtMostOnce => "The handler's body, without the engine. For tests.",
            Semantics::Idempotent => {
                "The handler's body, in a transaction of the caller's: no key, no commit. For tests."
            }
            Semantics::NaturallyIdempotent => {
                "The handler's body, in a transaction of the caller's: no commit. For tests."
            }
        };
        // In braces of ours: the compiler does not report the body of an unused handler beside the handler.
        let mut braces = Group::new(Delimiter::Brace, body.stream());
        braces.set_span(Span::mixed_site().located_at(body.span()));
        let (attrs, quiet, mut sig) = (self.body_attrs(), self.quiet(), self.body_signature());
        sig.ident = name;
        quote! {
            #[doc = #doc]
            #(#attrs)*
            #quiet
            #[allow(clippy::missing_errors_doc)]
            #vis #sig #braces
        }
    }

    /// The signature as written, and async even where that was forgotten, so that the body's awaits are no errors
    /// beside the refusal. A parameter that only the key reads is not unused.
    fn body_signature(&self) -> Signature {
        let read: BTreeSet<String> = self.args.expressions().flat_map(names::read).collect();
        let mut sig = self.handler.sig.clone();
        sig.asyncness.get_or_insert_with(Default::default);
        sig.constness = None;
        for input in &mut sig.inputs {
            if let FnArg::Typed(typed) = input
                && names::bound(&typed.pat).iter().any(|name| read.contains(&name.to_string()))
            {
                typed.attrs.push(parse_quote!(#[allow(unused_variables)]));
            }
        }
        sig
    }
}
