//! The key: the same expression in the type's `key` function and, for a method, in the wrapper.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Pat, PatIdent};

use super::{Declaration, local};
use crate::handler::{Handler, Param};
use crate::key::place;

impl Declaration<'_> {
    /// The function that makes the key, for tests and for whoever looks a key up.
    pub(super) fn key_fn(&self) -> TokenStream {
        let Self { rt, handler: Handler { vis, sig, .. }, .. } = self;
        let (generics, where_clause) = (&sig.generics, &sig.generics.where_clause);
        let params = self.params.iter().map(|param| {
            let (pat, ty) = (key_pattern(param), param.ty);
            if param.borrowed().is_some() { quote!(#pat: #ty) } else { quote!(#pat: &(#ty)) }
        });
        let (ident, key) = (Ident::new("key", sig.ident.span()), self.key());
        quote! {
            /// The key of the message's event.
            #[allow(unused_variables, unused_parens, unused_lifetimes, single_use_lifetimes, non_snake_case)]
            #[allow(clippy::all, clippy::pedantic)]
            #vis fn #ident #generics (
                #(#params),*
            ) -> ::core::result::Result<#rt::Key, #rt::KeyError> #where_clause {
                #key
            }
        }
    }

    /// The key, made of the wrapper's parameters.
    pub(super) fn key_in_wrapper(&self) -> TokenStream {
        let arguments = self.params.iter().map(|param| {
            let ident = &param.ident;
            if param.borrowed().is_some() { quote!(#ident) } else { quote!(&#ident) }
        });
        if self.handler.receiver().is_none() {
            let (key, generics) = (self.item("key"), self.turbofish());
            return quote!(#key #generics(#(#arguments),*));
        }
        let (patterns, key) = (self.params.iter().map(key_pattern), self.key());
        quote!({ #(#[allow(unused_variables, clippy::shadow_same)] let #patterns = #arguments;)* #key })
    }

    /// The expression that makes the key of what the parameters' patterns bind.
    fn key(&self) -> TokenStream {
        let Self { rt, private, args, .. } = self;
        let parts = args.key.iter().flat_map(|given| &given.value);
        // Bracketed, since a part may be an operation that binds less than the `&`.
        let mut parts = parts.map(|part| quote_spanned!(place(part)=> #private::key_part(&(#part))));
        let refused = &args.refused_parts;
        let Some(head) = parts.next() else {
            return quote!(#(let _ = &(#refused);)* ::core::unimplemented!());
        };
        let more = self.key_details();
        quote!(#(let _ = &(#refused);)* #rt::Key::of(#head, &[#(#parts),*]) #more)
    }

    /// What is compared and dated beside the key.
    fn key_details(&self) -> Option<TokenStream> {
        let Self { private, args, .. } = self;
        let key = local("__idem_key");
        let fingerprint = args.fingerprint.as_ref().map(|given| {
            let parts = &given.value;
            let parts = parts.iter().map(|part| quote_spanned!(place(part)=> #private::fingerprint_part(&(#part))));
            quote!(.with_fingerprint(&[#(#parts),*]))
        });
        let occurred_at = args.occurred_at.as_ref().map(|given| {
            let time = &given.value;
            quote_spanned!(time.span()=> .with_occurred_at(#time))
        });
        (fingerprint.is_some() || occurred_at.is_some()).then(|| quote!(.map(|#key| #key #fingerprint #occurred_at)))
    }
}

/// The parameter's pattern as the key sees it. It is matched against a reference, so it asks for no `mut` and no
/// reference of its own.
fn key_pattern(param: &Param<'_>) -> Pat {
    struct Borrowing {
        keep_references: bool,
    }
    impl VisitMut for Borrowing {
        fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
            pat.mutability = None;
            pat.by_ref = pat.by_ref.filter(|_| self.keep_references);
            visit_mut::visit_pat_ident_mut(self, pat);
        }

        fn visit_pat_mut(&mut self, pat: &mut Pat) {
            while let (false, Pat::Reference(reference)) = (self.keep_references, &mut *pat) {
                *pat = (*reference.pat).clone();
            }
            visit_mut::visit_pat_mut(self, pat);
        }
    }
    let mut pat = param.pat.clone();
    Borrowing { keep_references: param.borrowed().is_some() }.visit_pat_mut(&mut pat);
    pat
}
