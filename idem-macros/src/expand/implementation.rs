//! The handler as a type that consumers can run, where its parameters allow that.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{Lifetime, Type, TypeImplTrait, TypeReference, TypeTraitObject};

use super::{Declaration, STORE, local};
use crate::handler::bare;

impl Declaration<'_> {
    pub(super) fn implementation(&self) -> Option<TokenStream> {
        let Self { rt, handler, output, .. } = self;
        let (message, state) = self.runnable()?;
        let (name, key, call) = (handler.name(), self.key_method(state.is_some()), self.call_method(state.is_some()));
        let state = state.map_or_else(|| quote!(()), |state| quote!(#state));
        let quiet = self.quiet();
        let deprecated = self.is_deprecated().then(|| quote!(#[allow(deprecated)]));
        let (generics, store) = self.store();
        Some(quote! {
            #deprecated
            #quiet
            impl #generics #rt::Handler<#store> for #name {
                type Message = #message;
                type State = #state;
                type Returned = #output;
                const META: &'static #rt::HandlerMeta = #name::META;

                #key
                #call
            }
        })
    }

    /// The store that the handler runs on: its transaction's, or any. A transaction's type is written where no lifetime
    /// is at hand; its store is the same for all of them.
    fn store(&self) -> (Option<TokenStream>, TokenStream) {
        let rt = &self.rt;
        match self.tx {
            Some(tx) => {
                let mut tx = tx.clone();
                LifetimesToStatic.visit_type_mut(&mut tx);
                (None, quote!(<#tx as #rt::TxParam>::Store))
            }
            None => {
                let store = local(STORE);
                (Some(quote!(<#store: #rt::Store>)), quote!(#store))
            }
        }
    }

    /// The types of message and state, if a consumer can hold them.
    pub(super) fn runnable(&self) -> Option<(&Type, Option<&Type>)> {
        let has_type = self.handler.receiver().is_none() && self.handler.sig.generics.params.is_empty();
        if !has_type || !can_be_named(self.output) {
            return None;
        }
        let types: Vec<_> = self
            .params
            .iter()
            .map(|param| param.borrowed().filter(|ty| can_be_named(ty) && !is_static(param.ty)))
            .collect();
        match types[..] {
            [Some(message)] => Some((bare(message), None)),
            [Some(message), Some(state)] => Some((bare(message), Some(bare(state)))),
            _ => None,
        }
    }

    /// Whether the wrapper can leave its work to what consumers run. With a trait object it takes more: its `&dyn Trait`
    /// may borrow, the type behind a consumer's may not.
    pub(super) fn is_run_by_consumers(&self) -> bool {
        struct Find(bool);
        impl<'ast> Visit<'ast> for Find {
            fn visit_type_trait_object(&mut self, _: &'ast TypeTraitObject) {
                self.0 = true;
            }
        }
        let mut find = Find(false);
        self.params.iter().for_each(|param| find.visit_type(param.ty));
        self.runnable().is_some() && !find.0
    }

    fn key_method(&self, has_state: bool) -> TokenStream {
        let (rt, name) = (&self.rt, self.handler.name());
        let some = quote!(::core::option::Option);
        let for_store = self.tx.is_none().then(|| local(STORE)).map(|store| quote!(::<#store>));
        let (message, state, key) = if self.args.semantics.has_key() {
            let ((state, pass_state), message) = (state_param(has_state), local("message"));
            let key = quote!(#name::key(#message, #pass_state).map(#some::Some));
            (message, state, key)
        } else {
            (local("_message"), local("_state"), quote!(::core::result::Result::Ok(#some::None)))
        };
        quote! {
            fn key(
                #message: &Self::Message,
                #state: &Self::State,
            ) -> ::core::result::Result<#some<#rt::Key>, #rt::KeyError> {
                // A consumer uses the function too, in the eyes of the compiler. Here no parameter can have its name.
                let _ = #name #for_store;
                #key
            }
        }
    }

    /// The wrapper's work, so that the compiler proves one future less to be `Send`.
    fn call_method(&self, has_state: bool) -> TokenStream {
        let Self { rt, private, .. } = self;
        let (engine, (_, store)) = (local("engine"), self.store());
        let ([message, state], is_prepared) = (self.own_params(has_state), self.is_prepared());
        let run = if is_prepared {
            quote!(#private::run(#engine, <Self as #rt::Handler<#store>>::prepare(#message, #state)))
        } else {
            self.run()
        };
        let prepare = is_prepared.then(|| self.prepare_method(has_state));
        quote! {
            #[allow(non_snake_case, clippy::used_underscore_binding)]
            fn call<'a>(
                #engine: &'a #rt::Engine<#store>,
                #message: &'a Self::Message,
                #state: &'a Self::State,
            ) -> #private::BoxFuture<'a, #rt::Handled<Self::Returned>> {
                #run
            }
            #prepare
        }
    }

    /// What `call` runs, for whoever wants to run it together with others.
    fn prepare_method(&self, has_state: bool) -> TokenStream {
        let (private, prepare, (_, store)) = (&self.private, self.prepare(), self.store());
        let ([message, state], option) = (self.own_params(has_state), quote!(::core::option::Option));
        let batch = self.batch_method(has_state);
        quote! {
            #[allow(non_snake_case, clippy::used_underscore_binding)]
            fn prepare<'a>(
                #message: &'a Self::Message,
                #state: &'a Self::State,
            ) -> #option<#private::Prepared<'a, #store, Self::Returned>> {
                #option::Some({ #prepare })
            }
            #batch
        }
    }

    /// The body for many messages, which the user has written beside the handler.
    fn batch_method(&self, has_state: bool) -> Option<TokenStream> {
        let (private, path, (_, store)) = (&self.private, &self.args.batch.as_ref()?.value, self.store());
        let ([attempt, messages], (state, pass_state)) =
            (["__idem_attempt", "messages"].map(local), state_param(has_state));
        let pass_state = pass_state.map(|state| quote!(, #state));
        let option = quote!(::core::option::Option);
        // At the function's name, where it is blamed if it takes or gives something else.
        let call = quote_spanned!(path.span()=> #private::slice(#path(#attempt.tx(), #messages #pass_state)));
        Some(quote! {
            const APPLIES_ALL: bool = true;

            fn apply_all<'c, 't>(
                #attempt: #private::Attempt<'c, 'c, 't, #store>,
                #messages: &'t [&'t Self::Message],
                #state: &'t Self::State,
            ) -> #option<#private::BoxFuture<'t, #private::SliceReturned<Self::Returned>>> {
                #option::Some(#call)
            }
        })
    }

    /// Whether a delivery can be made ready before it runs.
    fn is_prepared(&self) -> bool {
        self.args.semantics.has_transaction() && !self.refused
    }

    /// The names of message and state, as the wrapper has them.
    fn own_params(&self, has_state: bool) -> [Ident; 2] {
        let mut params = self.params.iter().map(|param| param.ident.clone());
        let (message, no_state) = (params.next(), local("_no_state"));
        let state = if has_state { params.next() } else { None };
        [message.unwrap_or_else(|| local("_message")), state.unwrap_or(no_state)]
    }
}

/// The name of the state parameter, and what is passed on of it.
fn state_param(exists: bool) -> (Ident, Option<Ident>) {
    if exists { (local("state"), Some(local("state"))) } else { (local("_state"), None) }
}

/// Whether the type can be written down outside the signature: no elided or named lifetime, no `impl Trait`.
fn can_be_named(ty: &Type) -> bool {
    struct Find(bool);
    impl<'ast> Visit<'ast> for Find {
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            self.0 |= lifetime.ident != "static";
        }
        fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
            self.0 |= reference.lifetime.is_none();
            visit::visit_type_reference(self, reference);
        }
        fn visit_type_impl_trait(&mut self, _: &'ast TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut find = Find(false);
    find.visit_type(ty);
    !find.0
}

/// Whether it is a reference that lives for ever, which no consumer can lend.
fn is_static(ty: &Type) -> bool {
    matches!(bare(ty), Type::Reference(TypeReference { lifetime: Some(_), .. }))
}

struct LifetimesToStatic;

impl VisitMut for LifetimesToStatic {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        lifetime.ident = Ident::new("static", lifetime.ident.span());
    }
}
