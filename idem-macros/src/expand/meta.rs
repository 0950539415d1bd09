//! What the registry knows of the handler.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, LitStr};

use super::{Declaration, local};
use crate::args::{Args, Given};
use crate::duration;
use crate::handler::Handler;
use crate::semantics::Semantics;
use crate::text::compact;
use crate::value::{AllowArg, ExternalArg, Length, WindowArg};

/// The constant with the facts, where it has no type to belong to.
const FACTS: &str = "__IDEM_META";

impl Declaration<'_> {
    /// The facts of a function: submitted, and a constant of its type. The submission does not name the type, or an
    /// unused handler would count as used.
    pub(super) fn facts(&self) -> TokenStream {
        let Self { rt, handler: Handler { vis, sig, .. }, .. } = self;
        let (facts, inside, name) = (local(FACTS), self.facts_inside(), &sig.ident);
        let meta = Ident::new("META", name.span());
        quote! {
            const _: () = {
                #inside
                impl #name {
                    /// What the registry knows of the handler.
                    #vis const #meta: &'static #rt::HandlerMeta = #facts;
                }
            };
        }
    }

    /// The facts inside a block: a constant, and its submission.
    pub(super) fn facts_inside(&self) -> TokenStream {
        let Self { rt, private, .. } = self;
        let (facts, meta) = (local(FACTS), self.meta());
        let submission = (!self.refused).then(|| quote!(#private::inventory::submit! { #private::Registered(#facts) }));
        let comparisons = self.comparisons();
        quote! {
            const #facts: &#rt::HandlerMeta = #meta;
            #comparisons
            #submission
        }
    }

    /// Lengths that are constants are compared by the compiler, each comparison at the length that decides it.
    fn comparisons(&self) -> Option<TokenStream> {
        let args = self.args;
        let lengths =
            args.retention.iter().map(|given| &given.value).chain(args.windows().map(|window| &window.length));
        let constant = lengths.filter_map(Length::constant).next();
        let retention =
            constant.filter(|_| args.redelivery.is_some()).map(|at| self.comparison(at, "compare_retention"));
        let compared = constant.is_some() || args.policy.is_some();
        let windows = args.external.iter().filter_map(|given| given.value.window.as_ref());
        let provider = windows.filter(|window| compared || window.constant().is_some()).map(Length::span).next();
        let provider = provider.map(|at| self.comparison(at, "compare_providers"));
        (!self.refused).then(|| quote!(#retention #provider))
    }

    fn comparison(&self, at: Span, method: &str) -> TokenStream {
        // One place for all tokens: of several, the compiler would underline the whole attribute.
        let [facts, method] = [FACTS, method].map(|name| Ident::new(name, Span::mixed_site().located_at(at)));
        quote_spanned!(at=> const _: () = #facts.#method();)
    }

    /// How the wrapper names the facts.
    pub(super) fn meta_path(&self) -> TokenStream {
        if self.handler.receiver().is_none() {
            return self.item("META");
        }
        let facts = local(FACTS);
        quote!(#facts)
    }

    /// The facts as a constant expression.
    fn meta(&self) -> TokenStream {
        let Self { rt, private, args, handler, .. } = self;
        let (name, function) = (args.name_of(handler), handler.plain_name());
        let pinned = args.name.as_ref().map(|_| quote!(.pinned()));
        let summary = self.doc_lines().map(|line| line.trim().to_owned()).find(|line| !line.is_empty());
        let summary = summary.unwrap_or_default();
        let message = self.params.first().map(|param| compact(param.borrowed().unwrap_or(param.ty)));
        let (semantics, key, details) = (self.semantics(), self.meta_key(), self.meta_details());
        let (external, allowed) = (self.external(), self.allowed());
        quote! {
            &#rt::HandlerMeta::new(
                #name,
                #private::place!(#function),
                #rt::Semantics::#semantics,
            )
            #pinned.describe(#summary, #message) #key #details #external #allowed
        }
    }

    fn semantics(&self) -> TokenStream {
        let text = |given: &Option<Given<LitStr>>| given.as_ref().map_or_else(String::new, |given| given.value.value());
        let (reason, loss) = (text(&self.args.reason), text(&self.args.loss));
        match self.args.semantics {
            Semantics::Idempotent => quote!(Idempotent),
            Semantics::AtMostOnce => quote!(AtMostOnce { reason: #reason, loss: #loss }),
            Semantics::NaturallyIdempotent => quote!(NaturallyIdempotent { reason: #reason }),
        }
    }

    /// The key with its retention and redelivery. A policy is named once: the compiler reports each mention.
    fn meta_key(&self) -> TokenStream {
        let Args { key, retention, policy, .. } = self.args;
        let texts = texts(key.as_ref());
        if let Some(Given { value, .. }) = policy.as_ref().filter(|_| !self.refused) {
            let name = compact(value);
            return quote_spanned!(value.span()=> .policy(#texts, #name, &#value));
        }
        let retention = retention.as_ref().map_or_else(|| self.seconds(1), |given| self.length(&given.value));
        let redelivery = self.redelivery();
        let key = self.args.semantics.has_key().then(|| quote!(.key(#texts, #retention)));
        quote!(#key #redelivery)
    }

    fn meta_details(&self) -> TokenStream {
        let fingerprint = self.args.fingerprint.as_ref().map(|given| {
            let texts = texts(Some(given));
            quote!(.fingerprint(#texts))
        });
        let occurred_at = self.args.occurred_at.as_ref().map(|given| {
            let text = compact(&given.value);
            quote!(.occurred_at(#text))
        });
        let replay = self.args.replay.as_ref().map(|_| quote!(.replay()));
        quote!(#fingerprint #occurred_at #replay)
    }

    fn redelivery(&self) -> Option<TokenStream> {
        let (rt, given) = (&self.rt, self.args.redelivery.as_ref().filter(|_| !self.refused)?);
        let windows = given.value.iter().map(|WindowArg { source, length }| {
            let (source, length) = (source.to_string(), self.length(length));
            quote!(#rt::Window::new(#source, #length))
        });
        Some(quote_spanned!(given.option=> .redelivery(&[#(#windows),*])))
    }

    fn external(&self) -> Option<TokenStream> {
        let first = self.args.external.first().filter(|_| !self.refused)?;
        let effects = self.args.external.iter().map(|given| self.external_effect(&given.value));
        Some(quote_spanned!(first.option=> .external(&[#(#effects),*])))
    }

    fn external_effect(&self, external: &ExternalArg) -> TokenStream {
        let rt = &self.rt;
        let ExternalArg { provider, guard, window, lookup, risk } = external;
        let guard = match guard.as_ref().map(Ident::to_string).as_deref() {
            Some("provider_key") => quote!(ProviderKey),
            Some("lookup") => quote!(Lookup),
            Some("outbox") => quote!(Outbox),
            _ => quote!(None),
        };
        let window = window.as_ref().map(|window| {
            let length = self.length(window);
            quote!(.window(#length))
        });
        let lookup = lookup.as_ref().map(|lookup| quote!(.lookup(#lookup)));
        quote!(#rt::External::new(#provider, #rt::Guard::#guard, #risk) #window #lookup)
    }

    fn allowed(&self) -> Option<TokenStream> {
        let (rt, given) = (&self.rt, &self.args.allow);
        let allowed = given.iter().map(|Given { value: AllowArg { category, reason }, .. }| {
            let category = category.to_string();
            quote!(#rt::Allowed::new(#category, #reason))
        });
        (!given.is_empty() && !self.refused).then(|| quote!(.allowed(&[#(#allowed),*])))
    }

    fn length(&self, length: &Length) -> TokenStream {
        match length {
            Length::Const(value) if !self.refused => quote_spanned!(value.span()=> #value),
            Length::Const(_) => self.seconds(1),
            // Unreadable only where it was refused already.
            Length::Text(text) => self.seconds(duration::seconds(&text.value()).unwrap_or(1)),
        }
    }

    fn seconds(&self, secs: u64) -> TokenStream {
        let rt = &self.rt;
        quote!(#rt::Retention::seconds(#secs))
    }
}

/// The expressions as people write them.
fn texts(given: Option<&Given<Vec<Expr>>>) -> TokenStream {
    let texts = given.into_iter().flat_map(|given| &given.value).map(compact);
    quote!(&[#(#texts),*])
}
