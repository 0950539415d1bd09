//! What the registry and the documentation know of the handler.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

use super::{Declaration, local};
use crate::args::{Given, RetentionArg, WindowArg};
use crate::duration;
use crate::handler::Handler;
use crate::text::compact;

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
        quote! {
            const #facts: &#rt::HandlerMeta = #meta;
            #submission
        }
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
        let Self { rt, args, handler, .. } = self;
        let (name, function) = (args.name_of(handler), handler.plain_name());
        let pinned = args.name.as_ref().map(|_| quote!(.pinned()));
        let summary = self.doc_lines().map(|line| line.trim().to_owned()).find(|line| !line.is_empty());
        let summary = summary.unwrap_or_default();
        let message = self.params.first().map(|param| compact(param.borrowed().unwrap_or(param.ty)));
        let (key, retention, details) = (texts(args.key.as_ref()), self.retention(), self.meta_details());
        let redelivery = self.redelivery();
        quote! {
            &#rt::HandlerMeta::new(
                #name,
                #rt::Place::new(
                    ::core::concat!(::core::module_path!(), "::", #function),
                    ::core::file!(),
                    ::core::line!(),
                ),
                #rt::Semantics::Idempotent,
            )
            #pinned.describe(#summary, #message).key(#key, #retention) #redelivery #details
        }
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

    fn retention(&self) -> TokenStream {
        self.args.retention.as_ref().map_or_else(|| self.seconds(1), |given| self.length(&given.value))
    }

    fn redelivery(&self) -> Option<TokenStream> {
        let (rt, given) = (&self.rt, self.args.redelivery.as_ref().filter(|_| !self.refused)?);
        let windows = given.value.iter().map(|WindowArg { source, length }| {
            let (source, length) = (source.to_string(), self.length(length));
            quote!(#rt::Window::new(#source, #length))
        });
        Some(quote_spanned!(given.option=> .redelivery(&[#(#windows),*])))
    }

    fn length(&self, length: &RetentionArg) -> TokenStream {
        match length {
            RetentionArg::Const(value) if !self.refused => quote_spanned!(value.span()=> #value),
            RetentionArg::Const(_) => self.seconds(1),
            // Unreadable only where it was refused already.
            RetentionArg::Text(text) => self.seconds(duration::seconds(&text.value()).unwrap_or(1)),
        }
    }

    fn seconds(&self, secs: u64) -> TokenStream {
        let rt = &self.rt;
        quote!(#rt::Retention::seconds(#secs))
    }

    /// What rustdoc shows below the user's own text.
    pub(super) fn documentation(&self) -> String {
        let args = self.args;
        let name = args.name_of(self.handler);
        let keys: Vec<String> = args.key.iter().flat_map(|given| &given.value).map(compact).collect();
        let retention = args.retention.as_ref().map_or_else(String::new, |given| written(&given.value));
        let windows: Vec<String> =
            args.windows().map(|window| format!("{} {}", window.source, written(&window.length))).collect();
        let redelivery =
            if windows.is_empty() { "not declared".to_owned() } else { format!("`{}`", windows.join(" + ")) };
        let has_errors = self.doc_lines().any(|line| line.contains("# Errors"));
        let errors = "\n\n# Errors\n\nThe handler's own error, or the engine's. Neither may be acknowledged.";
        format!(
            "\n\n# Idempotency\n\nApplies each event once: the key and the effect are written in one transaction.\n\n\
             - handler name: `{name}`\n- key: `{}`\n- retention: `{retention}`\n- redelivery window: {redelivery}{}",
            keys.join("`, `"),
            if has_errors { "" } else { errors },
        )
    }
}

fn written(length: &RetentionArg) -> String {
    match length {
        RetentionArg::Text(text) => text.value(),
        RetentionArg::Const(value) => compact(value),
    }
}

/// The expressions as people write them.
fn texts(given: Option<&Given<Vec<Expr>>>) -> TokenStream {
    let texts = given.into_iter().flat_map(|given| &given.value).map(compact);
    quote!(&[#(#texts),*])
}
