//! What the wrapper does: makes the key, and hands everything to the runtime.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use super::{Declaration, at, local};

/// A value on its way through the wrapper into the body.
struct Argument {
    /// What the wrapper calls it.
    ident: Ident,
    /// Where a value that is moved waits for its run. A shared reference is copied into every run.
    slot: Option<Ident>,
}

impl Declaration<'_> {
    /// Gives the runtime's boxed future.
    pub(super) fn run(&self) -> TokenStream {
        if self.refused {
            return quote!(::core::unimplemented!());
        }
        let (facts, engine) = (self.handler.receiver().map(|_| self.facts_inside()), local("engine"));
        if !self.args.semantics.has_transaction() {
            let run = self.run_once();
            return quote!(#facts #run);
        }
        let prepare = self.prepare();
        quote!(#facts { #prepare }.run(#engine))
    }

    fn run_once(&self) -> TokenStream {
        let (private, engine, meta) = (&self.private, local("engine"), self.meta_path());
        let (body, generics) = (self.body_path(), self.turbofish());
        let values = self.arguments().into_iter().map(|argument| argument.ident);
        quote!(#private::run_at_most_once(#engine, #meta, #body #generics(#(#values),*)))
    }

    /// Gives the delivery, ready to run.
    pub(super) fn prepare(&self) -> TokenStream {
        let private = &self.private;
        let [plan, attempt] = ["__idem_plan", "__idem_attempt"].map(local);
        let arguments = self.arguments();
        // The plan makes the key, so it comes before anything is moved.
        let (make_plan, call) = (self.plan(), self.call(&attempt, &arguments));
        let slots = arguments.iter().filter_map(|argument| argument.slot.as_ref());
        let keep = arguments.iter().filter_map(|argument| argument.keep(private));
        let next = arguments.iter().filter_map(Argument::next);
        let codec = if self.args.replay.is_some() { local("Remember") } else { local("Forget") };
        quote! {
            #[allow(unused_imports)]
            use #private::via::*;
            let #plan = #make_plan;
            #(#keep)*
            #private::prepare(#plan #(.repeatable_if(#slots.is_repeatable()))*, #private::#codec, move |#attempt| {
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

    /// What the runtime must know before the first run.
    fn plan(&self) -> TokenStream {
        let (private, output, meta, error) = (&self.private, self.output, self.meta_path(), local("__idem_error"));
        let (keyed, make_key) = if self.args.semantics.has_key() {
            let make_key = self.key_in_wrapper();
            (local("keyed"), Some(quote!(|| #make_key,)))
        } else {
            (local("unkeyed"), None)
        };
        // At the result's type, where it is blamed if it is none.
        let plan_of = quote_spanned!(at(output)=> #private::Plan::<#output>::#keyed);
        quote!(#plan_of(#meta, #make_key |#error| (&&&#private::Cause(#error)).sqlx_error()))
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

impl ToTokens for Argument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.slot.as_ref().unwrap_or(&self.ident).to_tokens(tokens);
    }
}
