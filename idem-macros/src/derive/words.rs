//! The grammar of `#[key(…)]`: words, each with a value.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, LitStr, Path, Token, Variant};

/// Every word, and how it is written.
pub(super) const WORDS: [(&str, &str); 2] =
    [("rename", "#[key(rename = \"paid\")]"), ("crate", "#[key(crate = our_crate::idem_runtime)]")];

/// What a `#[key(…)]` stands on.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Type,
    /// A variant, counted from 0.
    Variant(usize),
    Field,
}

/// One word as written.
pub(super) struct Word {
    pub(super) place: Place,
    pub(super) name: Ident,
    pub(super) value: Value,
}

pub(super) enum Value {
    Text(LitStr),
    Path(Path),
    /// Of a word that nobody knows, or of the wrong type.
    Other(Option<syn::Error>),
}

/// The words of a type, its variants and its fields.
pub(super) struct Words {
    pub(super) list: Vec<Word>,
    /// What stands in a `#[key(…)]` and is no list of words.
    pub(super) unreadable: Vec<syn::Error>,
}

impl Words {
    pub(super) fn of(item: &DeriveInput) -> Self {
        let mut words = Self { list: Vec::new(), unreadable: Vec::new() };
        words.read(Place::Type, &item.attrs);
        match &item.data {
            Data::Struct(data) => data.fields.iter().for_each(|field| words.read(Place::Field, &field.attrs)),
            Data::Enum(data) => {
                for (index, variant) in data.variants.iter().enumerate() {
                    words.read(Place::Variant(index), &variant.attrs);
                    variant.fields.iter().for_each(|field| words.read(Place::Field, &field.attrs));
                }
            }
            Data::Union(_) => {}
        }
        words
    }

    fn read(&mut self, place: Place, attributes: &[Attribute]) {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("key")) {
            match attribute.parse_args_with(Punctuated::<Raw, Token![,]>::parse_terminated) {
                Ok(raw) if raw.is_empty() => {
                    self.unreadable.push(syn::Error::new_spanned(attribute.path(), "it is empty"));
                }
                Ok(raw) => self.list.extend(raw.into_iter().map(|Raw { name, value }| Word { place, name, value })),
                Err(error) => self.unreadable.push(error),
            }
        }
    }

    /// The path of the runtime crate, if it is given.
    pub(super) fn krate(&self) -> Option<&Path> {
        self.list.iter().find_map(|word| match &word.value {
            Value::Path(path) => Some(path),
            _ => None,
        })
    }

    /// The text that a variant is renamed to, counted from 0.
    pub(super) fn rename(&self, variant: usize) -> Option<&LitStr> {
        self.list.iter().find_map(|word| match &word.value {
            Value::Text(text) if word.place == Place::Variant(variant) => Some(text),
            _ => None,
        })
    }

    /// The text that is stored for a variant, counted from 0.
    pub(super) fn text(&self, index: usize, variant: &Variant) -> String {
        self.rename(index).map_or_else(|| variant.ident.unraw().to_string(), LitStr::value)
    }
}

struct Raw {
    name: Ident,
    value: Value,
}

impl Parse for Raw {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let mut tokens = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![,]) {
            tokens.extend([input.parse::<TokenTree>()?]);
        }
        let value = match name.to_string().as_str() {
            "rename" => assigned(tokens, <LitStr as Parse>::parse).map(Value::Text),
            "crate" => assigned(tokens, Path::parse_mod_style).map(Value::Path),
            _ => Ok(Value::Other(None)),
        };
        let value = value.unwrap_or_else(|error| Value::Other(Some(error)));
        Ok(Self { name, value })
    }
}

fn assigned<T>(tokens: TokenStream, value: fn(ParseStream<'_>) -> syn::Result<T>) -> syn::Result<T> {
    let parser = |input: ParseStream<'_>| {
        input.parse::<Token![=]>()?;
        value(input)
    };
    parser.parse2(tokens)
}
