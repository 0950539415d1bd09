//! The runtime's names in generated code: absolute, or below the path of `crate = …`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

/// The path of the runtime crate.
pub(crate) struct Runtime<'a>(Option<&'a syn::Path>);

impl<'a> Runtime<'a> {
    pub(crate) fn new(given: Option<&'a syn::Path>) -> Self {
        Self(given)
    }

    /// Where the names live that only generated code uses.
    pub(super) fn private(&self) -> TokenStream {
        quote!(#self::__private)
    }
}

impl ToTokens for Runtime<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self.0 {
            Some(path) => path.to_tokens(tokens),
            None => tokens.extend(quote!(::idem_runtime)),
        }
    }
}
