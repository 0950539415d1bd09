//! Prints the generated code. The only file that quotes; it asks questions and computes nothing.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Attribute, Expr, FnArg, Lifetime, Pat, Signature, Type, parse_quote};

use crate::args::{Args, RetentionArg};
use crate::duration;
use crate::handler::{Handler, Param};
use crate::paths::Runtime;
use crate::text::compact;

/// What stands in several places of one expansion.
struct Parts<'a> {
    rt: Runtime<'a>,
    private: TokenStream,
    args: &'a Args,
    handler: &'a Handler,
    tx: &'a Type,
    output: &'a Type,
    params: Vec<Param<'a>>,
}

impl<'a> Parts<'a> {
    fn of(args: &'a Args, handler: &'a Handler) -> Option<Self> {
        let rt = Runtime::new(args.krate.as_ref().map(|given| &given.value));
        let private = rt.private();
        let (tx, output) = (handler.transaction()?, handler.output()?);
        Some(Self { rt, private, args, handler, tx, output, params: handler.params() })
    }
}

/// The whole handler.
pub(crate) fn handler(args: &Args, handler: &Handler) -> TokenStream {
    // `check` has refused a declaration for which there are no parts.
    let Some(parts) = Parts::of(args, handler) else {
        return TokenStream::new();
    };
    let run = parts.run();
    if handler.receiver().is_some() {
        let (wrapper, body) = (parts.wrapper(&run), parts.body_in_place());
        return quote!(#wrapper #body);
    }
    let (wrapper, type_, registration, implementation) =
        (parts.wrapper(&run), parts.type_with(&parts.key_fn()), parts.registration(), parts.implementation());
    quote!(#wrapper #type_ #registration #implementation)
}

/// A handler that cannot run, with the signature that callers see.
pub(crate) fn stub(args: &Args, handler: &Handler) -> Option<TokenStream> {
    let parts = Parts::of(args, handler)?;
    if parts.params.is_empty() || handler.sig.asyncness.is_none() {
        return None;
    }
    let wrapper = parts.wrapper(&quote!(::core::unimplemented!()));
    let body = if handler.receiver().is_some() { parts.body_in_place() } else { parts.type_with(&TokenStream::new()) };
    Some(quote!(#[allow(unused, clippy::all)] #wrapper #body))
}

impl Parts<'_> {
    /// The function under the user's name, with the engine in the transaction's place.
    fn wrapper(&self, body: &TokenStream) -> TokenStream {
        let Self { rt, handler, tx, output, .. } = self;
        let Handler { vis, sig, attrs, .. } = handler;
        let (generics, where_clause, name) = (&sig.generics, &sig.generics.where_clause, handler.name());
        let attrs = attrs.iter().filter(|attr| belongs_to_the_wrapper(attr));
        let doc = self.documentation();
        let receiver = handler.receiver().cloned().map(|mut receiver| {
            receiver.mutability = None;
            quote!(#receiver,)
        });
        let engine = local("engine");
        let params = self.params.iter().map(|Param { ident, ty, .. }| quote!(#ident: #ty));
        let result = quote_spanned!(output.span()=> #rt::Handled<#output>);
        quote! {
            #(#attrs)*
            #[doc = #doc]
            #vis async fn #name #generics (#receiver #engine: &#rt::EngineFor<#tx>, #(#params),*) -> #result #where_clause {
                #body
            }
        }
    }

    /// The wrapper's body: the key, then the runtime.
    fn run(&self) -> TokenStream {
        let Self { rt, private, handler, output, .. } = self;
        let (engine, key, attempt, error) = (local("engine"), local("key"), local("attempt"), local("error"));
        let (meta, make_key) = (self.meta_path(), self.key_here());
        let codec = if self.args.replay.is_some() { quote!(Remember) } else { quote!(Forget) };
        let call = match handler.receiver() {
            Some(_) => body_name(handler),
            None => quote_name(handler, "apply_in"),
        };
        let generics = turbofish(handler);
        let (mut keep, mut repeatable, mut next, mut arguments) = (vec![], vec![], vec![], vec![]);
        let receiver = handler.receiver().map(|receiver| {
            (Ident::new("self", receiver.self_token.span), local("receiver"), handler.borrows_receiver())
        });
        let params =
            self.params.iter().map(|param| (param.ident.clone(), param.ident.clone(), param.borrowed().is_some()));
        for (from, to, is_shared) in receiver.iter().cloned().chain(params) {
            if is_shared {
                arguments.push(from);
                continue;
            }
            keep.push(quote! { let mut #to = { let clone = (&&#private::CloneProbe(&#from)).clone_fn(); #private::Owned::new(#from, clone) }; });
            repeatable.push(quote!(&& #to.is_repeatable()));
            next.push(quote!(let #to = #to.for_next_run();));
            arguments.push(to);
        }
        let arguments = match &receiver {
            Some(_) => {
                let (first, rest) = (&arguments[0], &arguments[1..]);
                quote!(#first, #attempt.tx(), #(#rest),*)
            }
            None => quote!(#attempt.tx(), #(#arguments),*),
        };
        let in_place = handler.receiver().map(|_| self.meta_in_place());
        quote! {
            #in_place
            #[allow(unused_imports)]
            use #private::{ViaAsRef as _, ViaClone as _, ViaError as _, ViaMove as _, ViaNone as _};
            let #key = #make_key;
            #(#keep)*
            let #key = #private::Plan {
                meta: #meta,
                key: #key,
                repeatable: true #(#repeatable)*,
                cause: |#error: &<#output as #rt::HandlerResult>::Err| (&&&#private::Cause(#error)).sqlx_error(),
            };
            #private::run(#engine, #key, #private::#codec, move |mut #attempt| {
                #(#next)*
                #private::Box::pin(async move {
                    let returned = #call #generics(#arguments).await;
                    #attempt.end(returned)
                })
            })
            .await
        }
    }

    /// The type under the same name, with the key and the plain body.
    fn type_with(&self, key: &TokenStream) -> TokenStream {
        let Self { handler, rt, .. } = self;
        let Handler { vis, attrs, body, .. } = handler;
        let name = handler.name();
        let attrs = attrs.iter().filter(|attr| belongs_to_the_body(attr));
        let mut sig = self.body_signature();
        sig.ident = Ident::new("apply_in", name.span());
        let meta = (!key.is_empty()).then(|| {
            let meta = self.meta();
            quote! {
                /// What the registry knows of the handler.
                #vis const META: &'static #rt::HandlerMeta = #meta;
            }
        });
        let doc =
            format!("The handler [`{name}`](fn@{name}) as a type: its key, its plain body, and what consumers run.");
        quote! {
            #[doc = #doc]
            #[allow(non_camel_case_types, dead_code)]
            #vis enum #name {}

            #[allow(dead_code, clippy::missing_errors_doc)]
            impl #name {
                #meta
                #key
                /// The handler's body, in a transaction of the caller's: no key, no commit. For tests.
                #(#attrs)*
                #vis #sig #body
            }
        }
    }

    fn key_fn(&self) -> TokenStream {
        let Self { rt, handler, .. } = self;
        let (vis, generics, where_clause) = (&handler.vis, &handler.sig.generics, &handler.sig.generics.where_clause);
        let params = self.params.iter().map(|param| {
            let (pat, ty) = (without_mut(param.pat), param.ty);
            if param.borrowed().is_some() { quote!(#pat: #ty) } else { quote!(#pat: &#ty) }
        });
        let key = self.key();
        quote! {
            /// The key of the message's event.
            #[allow(unused_variables, clippy::trivially_copy_pass_by_ref, clippy::needless_lifetimes)]
            #vis fn key #generics(#(#params),*) -> ::core::result::Result<#rt::Key, #rt::KeyError> #where_clause {
                #key
            }
        }
    }

    /// The key, made in the wrapper.
    fn key_here(&self) -> TokenStream {
        let arguments = self.params.iter().map(|param| {
            let ident = &param.ident;
            if param.borrowed().is_some() { quote!(#ident) } else { quote!(&#ident) }
        });
        if self.handler.receiver().is_none() {
            let (key, generics) = (quote_name(self.handler, "key"), turbofish(self.handler));
            return quote!(#key #generics(#(#arguments),*));
        }
        let pats = self.params.iter().map(|param| without_mut(param.pat));
        let key = self.key();
        quote!({ #(#[allow(unused_variables)] let #pats = #arguments;)* #key })
    }

    /// The expression that makes the key of what the parameters' patterns bind.
    fn key(&self) -> TokenStream {
        let Self { rt, private, args, .. } = self;
        let parts = args.key.iter().flat_map(|given| &given.value);
        let mut parts = parts.map(|part| quote_spanned!(part.span()=> #private::key_part(&#part)));
        let head = parts.next();
        let fingerprint = args.fingerprint.as_ref().map(|given| {
            let parts = given.value.iter().map(|part| quote_spanned!(part.span()=> #private::fingerprint_part(&#part)));
            quote!(.with_fingerprint(&[#(#parts),*]))
        });
        let occurred_at = args.occurred_at.as_ref().map(|given| {
            let time = &given.value;
            quote_spanned!(time.span()=> .with_occurred_at(#time))
        });
        let more =
            (fingerprint.is_some() || occurred_at.is_some()).then(|| quote!(.map(|key| key #fingerprint #occurred_at)));
        quote!(#rt::Key::of(#head, &[#(#parts),*]) #more)
    }

    /// The registered facts, as a constant expression.
    fn meta(&self) -> TokenStream {
        let Self { rt, args, handler, .. } = self;
        let function = handler.name().to_string();
        let name = args.name.as_ref().map_or_else(|| function.clone(), |name| name.value.value());
        let pinned = args.name.as_ref().map(|_| quote!(.pinned()));
        let summary = summary(&handler.attrs);
        let message = self.params.first().map(|param| compact(param.borrowed().unwrap_or(param.ty)));
        let texts = |parts: &[Expr]| {
            let texts = parts.iter().map(compact);
            quote!(&[#(#texts),*])
        };
        let key = args.key.as_ref().map(|given| texts(&given.value));
        let retention = self.retention();
        let fingerprint = args.fingerprint.as_ref().map(|given| {
            let texts = texts(&given.value);
            quote!(.fingerprint(#texts))
        });
        let occurred_at = args.occurred_at.as_ref().map(|given| {
            let text = compact(&given.value);
            quote!(.occurred_at(#text))
        });
        let replay = args.replay.as_ref().map(|_| quote!(.replay()));
        quote! {
            &#rt::HandlerMeta::new(
                #name,
                #rt::Place::new(::core::concat!(::core::module_path!(), "::", #function), ::core::file!(), ::core::line!()),
                #rt::Semantics::Idempotent,
            )
            #pinned .describe(#summary, #message) .key(#key, #retention) #fingerprint #occurred_at #replay
        }
    }

    fn retention(&self) -> TokenStream {
        let rt = &self.rt;
        match self.args.retention.as_ref().map(|given| &given.value) {
            Some(RetentionArg::Text(text)) => {
                let secs = duration::seconds(&text.value()).unwrap_or(1);
                quote!(#rt::Retention::seconds(#secs))
            }
            Some(RetentionArg::Const(value)) => quote_spanned!(value.span()=> #value),
            None => TokenStream::new(),
        }
    }

    fn meta_path(&self) -> TokenStream {
        if self.handler.receiver().is_some() { quote!(__IDEM_META) } else { quote_name(self.handler, "META") }
    }

    /// Inside an `impl` there is room for functions only, so a method's facts stand in its body.
    fn meta_in_place(&self) -> TokenStream {
        let Self { rt, private, .. } = self;
        let meta = self.meta();
        quote! {
            const __IDEM_META: &#rt::HandlerMeta = #meta;
            #private::inventory::submit! { #private::Registered(__IDEM_META) }
        }
    }

    fn registration(&self) -> TokenStream {
        let (private, meta) = (&self.private, self.meta_path());
        quote!(const _: () = { #private::inventory::submit! { #private::Registered(#meta) } };)
    }

    /// The plain body beside a method.
    fn body_in_place(&self) -> TokenStream {
        let Handler { vis, attrs, body, .. } = self.handler;
        let attrs = attrs.iter().filter(|attr| belongs_to_the_body(attr));
        let mut sig = self.body_signature();
        sig.ident = format_ident!("{}_in", sig.ident);
        let doc = format!(
            "The body of `{}`, in a transaction of the caller's: no key, no commit. For tests.",
            self.handler.name()
        );
        quote! {
            #[doc = #doc]
            #(#attrs)*
            #[allow(dead_code, clippy::missing_errors_doc)]
            #vis #sig #body
        }
    }

    /// The signature as written. A parameter that only the key reads is not unused.
    fn body_signature(&self) -> Signature {
        let Args { key, fingerprint, occurred_at, .. } = self.args;
        let mut names = Names::default();
        for expr in key
            .iter()
            .chain(fingerprint)
            .flat_map(|given| &given.value)
            .chain(occurred_at.iter().map(|given| &given.value))
        {
            names.visit_expr(expr);
        }
        let mut sig = self.handler.sig.clone();
        for input in &mut sig.inputs {
            if let FnArg::Typed(typed) = input {
                let mut bound = Names::default();
                bound.visit_pat(&typed.pat);
                if bound.0.iter().any(|name| names.0.contains(name)) {
                    typed.attrs.push(parse_quote!(#[allow(unused_variables)]));
                }
            }
        }
        sig
    }

    /// The handler as a type that consumers can run, where its parameters allow that.
    fn implementation(&self) -> Option<TokenStream> {
        let Self { rt, private, handler, output, .. } = self;
        let types: Vec<_> = self.params.iter().map(|param| param.borrowed().filter(|ty| can_be_named(ty))).collect();
        let (message, state) = match types[..] {
            [Some(message)] => (message, None),
            [Some(message), Some(state)] => (message, Some(state)),
            _ => return None,
        };
        if !handler.sig.generics.params.is_empty() || !can_be_named(output) {
            return None;
        }
        let mut tx = self.tx.clone();
        LifetimesToStatic.visit_type_mut(&mut tx);
        let name = handler.name();
        let (engine, message_name) = (local("engine"), local("message"));
        let (state_name, state_type, pass_state) = match state {
            Some(state) => (local("state"), quote!(#state), Some(local("state"))),
            None => (local("_state"), quote!(()), None),
        };
        Some(quote! {
            impl #rt::Handler<<#tx as #rt::TxParam>::Store> for #name {
                type Message = #message;
                type State = #state_type;
                type Ok = <#output as #rt::HandlerResult>::Ok;
                type Err = <#output as #rt::HandlerResult>::Err;

                const META: &'static #rt::HandlerMeta = #name::META;

                fn key(#message_name: &#message, #state_name: &#state_type) -> ::core::result::Result<#rt::Key, #rt::KeyError> {
                    #name::key(#message_name, #pass_state)
                }

                fn call<'a>(
                    #engine: &'a #rt::EngineFor<#tx>,
                    #message_name: &'a #message,
                    #state_name: &'a #state_type,
                ) -> #private::BoxFuture<'a, #rt::Handled<#output>> {
                    #private::Box::pin(#name(#engine, #message_name, #pass_state))
                }
            }
        })
    }

    /// What rustdoc shows below the user's own text.
    fn documentation(&self) -> String {
        let args = self.args;
        let name = args.name.as_ref().map_or_else(|| self.handler.name().to_string(), |name| name.value.value());
        let keys: Vec<String> = args.key.iter().flat_map(|given| &given.value).map(compact).collect();
        let retention = match args.retention.as_ref().map(|given| &given.value) {
            Some(RetentionArg::Text(text)) => text.value(),
            Some(RetentionArg::Const(value)) => format!("`{}`", compact(value)),
            None => String::new(),
        };
        format!(
            "\n\n# Idempotency\n\nApplies each event once: the key and the effect are written in one transaction.\n\n\
             - handler name: `{name}`\n- key: `{}`\n- retention: {retention}\n\n\
             # Errors\n\nThe handler's own error, or the engine's. Neither may be acknowledged.",
            keys.join("`, `")
        )
    }
}

/// A name that cannot clash with any of the user's.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn quote_name(handler: &Handler, item: &str) -> TokenStream {
    let (name, item) = (handler.name(), Ident::new(item, Span::mixed_site()));
    quote!(#name::#item)
}

fn body_name(handler: &Handler) -> TokenStream {
    let name = format_ident!("{}_in", handler.name());
    quote!(Self::#name)
}

fn turbofish(handler: &Handler) -> Option<TokenStream> {
    let names = handler.generic_args();
    (!names.is_empty()).then(|| quote!(::<#(#names),*>))
}

/// The pattern without the `mut` that only the body needs.
fn without_mut(pat: &Pat) -> Pat {
    struct Strip;
    impl VisitMut for Strip {
        fn visit_pat_ident_mut(&mut self, pat: &mut syn::PatIdent) {
            pat.mutability = None;
            pat.by_ref = None;
        }
    }
    let mut pat = pat.clone();
    Strip.visit_pat_mut(&mut pat);
    pat
}

/// Whether the type can be written down outside the signature: no elided or named lifetime, no `impl Trait`.
fn can_be_named(ty: &Type) -> bool {
    struct Find(bool);
    impl<'ast> Visit<'ast> for Find {
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            self.0 |= lifetime.ident != "static";
        }
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            self.0 |= reference.lifetime.is_none();
            syn::visit::visit_type_reference(self, reference);
        }
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut find = Find(false);
    find.visit_type(ty);
    !find.0
}

/// The identifiers in an expression or a pattern.
#[derive(Default)]
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.0.push(ident.to_string());
    }
}

struct LifetimesToStatic;

impl VisitMut for LifetimesToStatic {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        lifetime.ident = Ident::new("static", lifetime.ident.span());
    }
}

/// The first line of the documentation.
fn summary(attrs: &[Attribute]) -> String {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("doc"))
        .filter_map(|attr| match &attr.meta.require_name_value().ok()?.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        })
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

/// Documentation, and what speaks to callers.
fn belongs_to_the_wrapper(attr: &Attribute) -> bool {
    ["doc", "must_use", "deprecated", "allow", "warn", "deny", "forbid"].iter().any(|name| attr.path().is_ident(name))
}

/// Everything that speaks of the body: lints, `#[instrument]` and whatever else wraps a function.
fn belongs_to_the_body(attr: &Attribute) -> bool {
    !["doc", "must_use", "deprecated"].iter().any(|name| attr.path().is_ident(name))
}
