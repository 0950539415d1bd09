//! The function under the user's name, with the engine in the transaction's place.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Generics, parse_quote};

use super::{Declaration, STORE, at, local};
use crate::handler::{Handler, Param};

impl Declaration<'_> {
    pub(super) fn wrapper(&self) -> TokenStream {
        let Self { rt, handler: Handler { vis, sig, .. }, output, .. } = self;
        let (attrs, doc, quiet) = (self.caller_attrs(), self.documentation(), self.quiet());
        let (name, generics, where_clause) = (&sig.ident, self.wrapper_generics(), &sig.generics.where_clause);
        // The user's own tokens around it: the compiler reports an unused function only if it is not a macro's.
        let (async_, fn_) = (sig.asyncness.unwrap_or_default(), sig.fn_token);
        let (receiver, engine, engine_type) = (self.wrapper_receiver(), local("engine"), self.engine_type());
        let params = self.params.iter().map(|Param { ident, ty, .. }| quote!(#ident: #ty));
        let result = quote_spanned!(at(output)=> #rt::Handled<#output>);
        let body = self.run_by_wrapper();
        let braces = quote_spanned!(self.handler.body.span()=> { #body });
        quote! {
            #(#attrs)*
            #[doc = #doc]
            #quiet
            #[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
            #vis #async_ #fn_ #name #generics (
                #receiver #engine: &#engine_type, #(#params),*
            ) -> #result #where_clause #braces
        }
    }

    /// The receiver without the `mut` that only the body needs.
    fn wrapper_receiver(&self) -> Option<TokenStream> {
        let mut receiver = self.handler.receiver()?.clone();
        receiver.mutability = None;
        Some(quote!(#receiver,))
    }

    /// Leaves the work to what consumers run, where that is the same.
    fn run_by_wrapper(&self) -> TokenStream {
        let (rt, name, engine, run) = (&self.rt, self.handler.name(), local("engine"), self.run());
        if self.refused {
            return run;
        }
        if !self.is_run_by_consumers() {
            return quote!(#run.await);
        }
        let arguments = self.params.iter().map(|param| &param.ident);
        let no_state = (self.params.len() == 1).then(|| quote!(&()));
        quote!(<#name as #rt::Handler<_>>::call(#engine, #(#arguments,)* #no_state).await)
    }

    fn wrapper_generics(&self) -> Generics {
        let mut generics = self.handler.sig.generics.clone();
        if self.tx.is_none() {
            let (store, rt) = (local(STORE), &self.rt);
            generics.params.push(parse_quote!(#store: #rt::Store));
        }
        generics
    }

    /// The engine of the transaction's store, or of any.
    fn engine_type(&self) -> TokenStream {
        let rt = &self.rt;
        match self.tx {
            Some(tx) => quote_spanned!(at(tx)=> #rt::EngineFor<#tx>),
            None => {
                let store = local(STORE);
                quote!(#rt::Engine<#store>)
            }
        }
    }
}
