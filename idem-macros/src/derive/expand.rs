//! Prints the implementation. It asks questions and judges nothing.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Data, DeriveInput, Field, Fields, Index, Member, Type};

use super::words::Words;
use super::{held, is_named};
use crate::expand::paths::Runtime;

/// The implementation of a type that was not refused.
pub(super) fn implementation(item: &DeriveInput, words: &Words) -> TokenStream {
    let rt = runtime(words);
    let written = match &item.data {
        Data::Struct(data) => held(&data.fields).next().map(|(index, field)| of_field(index, field, &rt)),
        Data::Enum(data) => {
            let arms = data.variants.iter().enumerate().map(|(index, variant)| {
                let (ident, text) = (&variant.ident, words.text(index, variant));
                let rest = (!matches!(variant.fields, Fields::Unit)).then(|| quote!({ .. }));
                quote!(Self::#ident #rest => #text)
            });
            Some(quote!(#rt::Part::Text(match self { #(#arms),* })))
        }
        Data::Union(_) => None,
    };
    let bound = bounded(item).map(|field| quote!(#field: #rt::KeyPart));
    print(item, &rt, bound, &written.unwrap_or_else(unreachable))
}

/// An implementation that is never called, so that nothing else fails because it is missing.
pub(super) fn refused(item: &DeriveInput, words: &Words) -> TokenStream {
    print(item, &runtime(words), None, &unreachable())
}

fn print(item: &DeriveInput, rt: &TokenStream, bound: Option<TokenStream>, written: &TokenStream) -> TokenStream {
    let ident = &item.ident;
    let (parameters, arguments, where_clause) = item.generics.split_for_impl();
    let predicates = where_clause.iter().flat_map(|clause| &clause.predicates).map(ToTokens::to_token_stream);
    let predicates = predicates.chain(bound);
    quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #parameters #rt::KeyPart for #ident #arguments where #(#predicates),* {
            fn part(&self) -> #rt::Part<'_> {
                #written
            }
        }
    }
}

/// Delegates to the field, at whose type the compiler judges it.
fn of_field(index: usize, field: &Field, rt: &TokenStream) -> TokenStream {
    let member = match &field.ident {
        Some(name) => Member::Named(name.clone()),
        None => Member::Unnamed(Index { index: u32::try_from(index).unwrap_or(u32::MAX), span: Span::mixed_site() }),
    };
    let place = place(&field.ty);
    let local = Ident::new("field", Span::mixed_site().located_at(place));
    let call = quote_spanned!(place=> #rt::__private::field_part(#local));
    quote!(let #local = &self.#member; #call)
}

fn unreachable() -> TokenStream {
    quote!(::core::unimplemented!())
}

/// The path of the runtime crate.
fn runtime(words: &Words) -> TokenStream {
    Runtime::new(words.krate()).to_token_stream()
}

/// The field's type, if only the user of a generic type knows whether it is a part. What is always refused is left to
/// the compiler's judgement at the field.
fn bounded(item: &DeriveInput) -> Option<&Type> {
    struct Mentions<'a> {
        parameters: Vec<&'a Ident>,
        found: bool,
    }
    impl Visit<'_> for Mentions<'_> {
        fn visit_ident(&mut self, ident: &Ident) {
            self.found |= self.parameters.contains(&ident);
        }
    }
    let Data::Struct(data) = &item.data else {
        return None;
    };
    let (_, field) = held(&data.fields).next()?;
    let mut mentions =
        Mentions { parameters: item.generics.type_params().map(|param| &param.ident).collect(), found: false };
    mentions.visit_type(&field.ty);
    (mentions.found && !is_named(&field.ty, "Option")).then_some(&field.ty)
}

/// Where a field's type is underlined: at its last name.
fn place(ty: &Type) -> Span {
    match ty {
        Type::Path(path) => path.path.segments.last().map_or_else(|| ty.span(), |last| last.ident.span()),
        Type::Group(group) => place(&group.elem),
        Type::Paren(paren) => place(&paren.elem),
        Type::Reference(reference) => place(&reference.elem),
        ty => ty.span(),
    }
}
