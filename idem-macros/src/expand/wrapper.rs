//! The function under the user's name, with the engine in the transaction's place.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::{Declaration, local};
use crate::handler::{Handler, Param};

/// A value on its way through the wrapper into the body.
struct Argument {
    /// What the wrapper calls it.
    ident: Ident,
    /// Where a value that is moved waits for its run. A shared reference is copied into every run.
    slot: Option<Ident>,
}

impl Declaration<'_> {
    pub(super) fn wrapper(&self) -> TokenStream {
        let Self { rt, handler: Handler { vis, sig, .. }, tx, output, .. } = self;
        let (attrs, doc, quiet) = (self.caller_attrs(), self.documentation(), self.quiet());
        let (name, generics, where_clause) = (&sig.ident, &sig.generics, &sig.generics.where_clause);
        // The user's own tokens around it: the compiler reports an unused function only if it is not a macro's.
        let (async_, fn_) = (sig.asyncness.unwrap_or_default(), sig.fn_token);
        let (receiver, engine) = (self.wrapper_receiver(), local("engine"));
        let params = self.params.iter().map(|Param { ident, ty, .. }| quote!(#ident: #ty));
        let engine_type = quote_spanned!(at(tx)=> &#rt::EngineFor<#tx>);
        let result = quote_spanned!(at(output)=> #rt::Handled<#output>);
        let body = self.run_by_wrapper();
        let braces = quote_spanned!(self.handler.body.span()=> { #body });
        quote! {
            #(#attrs)*
            #[doc = #doc]
            #quiet
            #[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
            #vis #async_ #fn_ #name #generics (
                #receiver #engine: #engine_type, #(#params),*
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

    /// Makes the key, then hands everything to the runtime, which gives a boxed future.
    pub(super) fn run(&self) -> TokenStream {
        if self.refused {
            return quote!(::core::unimplemented!());
        }
        let private = &self.private;
        let [engine, plan, attempt] = ["engine", "__idem_plan", "__idem_attempt"].map(local);
        let facts = self.handler.receiver().map(|_| self.facts_inside());
        let codec = if self.args.replay.is_some() { local("Remember") } else { local("Forget") };
        let arguments = self.arguments();
        let (make_plan, call) = (self.plan(&plan, &arguments), self.call(&attempt, &arguments));
        let next = arguments.iter().filter_map(Argument::next);
        quote! {
            #facts
            #[allow(unused_imports)]
            use #private::{ViaAsRef as _, ViaClone as _, ViaError as _, ViaMove as _, ViaNone as _};
            #make_plan
            #private::run(#engine, #plan, #private::#codec, move |#attempt| {
                #(#next)*
                #private::Box::pin(#call)
            })
        }
    }

    /// The receiver, if there is one, and everything behind the transaction.
    fn arguments(&self) -> Vec<Argument> {
        let receiver = self
            .handler
            .receiver()
            .map(|receiver| (Ident::new("self", receiver.self_token.span), self.handler.borrows_receiver()));
        let params = self.params.iter().map(|param| (param.ident.clone(), param.borrowed().is_some()));
        let argument = |(index, (ident, is_shared)): (usize, (Ident, bool))| Argument {
            slot: (!is_shared).then(|| local(&format!("__idem_slot{index}"))),
            ident,
        };
        receiver.into_iter().chain(params).enumerate().map(argument).collect()
    }

    /// What the runtime must know before the first run. The key is a statement of its own: what it borrows on the way
    /// may not live across an await.
    fn plan(&self, plan: &Ident, arguments: &[Argument]) -> TokenStream {
        let private = &self.private;
        let [key, error] = ["__idem_key", "__idem_error"].map(local);
        let (meta, make_key) = (self.meta_path(), self.key_in_wrapper());
        let error_type = self.of_result("Err");
        let keep = arguments.iter().filter_map(|argument| argument.keep(private));
        let slots = arguments.iter().filter_map(|argument| argument.slot.as_ref());
        quote! {
            let #key = #make_key;
            #(#keep)*
            let #plan = #private::Plan {
                meta: #meta,
                key: #key,
                repeatable: true #(&& #slots.is_repeatable())*,
                cause: |#error: &#error_type| {
                    (&&&#private::Cause(#error)).sqlx_error()
                },
            };
        }
    }

    /// The call of the body.
    fn call(&self, attempt: &Ident, arguments: &[Argument]) -> TokenStream {
        let (body, generics) = (self.body_path(), self.turbofish());
        let before = usize::from(self.handler.receiver().is_some());
        let mut values: Vec<_> = arguments.iter().map(|argument| quote!(#argument)).collect();
        values.insert(before, quote!(#attempt.tx()));
        quote!(#body #generics(#(#values),*))
    }
}

impl Argument {
    /// Puts a moved value where each run can take it, cloned if its type can be.
    fn keep(&self, private: &TokenStream) -> Option<TokenStream> {
        let (Self { ident, .. }, slot, clone) = (self, self.slot.as_ref()?, local("__idem_clone"));
        Some(quote! {
            let mut #slot = {
                let #clone = (&&#private::CloneProbe(&#ident)).clone_fn();
                #private::Owned::new(#ident, #clone)
            };
        })
    }

    /// Takes the value for one run.
    fn next(&self) -> Option<TokenStream> {
        let slot = self.slot.as_ref()?;
        Some(quote!(let #slot = #slot.for_next_run();))
    }
}

/// The place of a type, for tokens that lints still take for a macro's.
fn at(ty: &Type) -> Span {
    Span::call_site().located_at(ty.span())
}

impl ToTokens for Argument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.slot.as_ref().unwrap_or(&self.ident).to_tokens(tokens);
    }
}
