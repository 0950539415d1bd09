//! What is printed after a refusal: every error, and enough of the handler that nothing else fails because of it.

use proc_macro2::TokenStream;
use quote::quote;

use crate::args::Args;
use crate::expand;
use crate::handler::Handler;

/// The errors and the item as it came.
pub(crate) fn untouched(errors: Option<syn::Error>, item: &TokenStream) -> TokenStream {
    let errors = errors.map(|errors| errors.to_compile_error());
    quote!(#errors #item)
}

/// The errors, the user's body, and a function that callers can be checked against.
pub(crate) fn stub(errors: Option<syn::Error>, args: &Args, handler: &Handler) -> TokenStream {
    let Some(stub) = expand::stub(args, handler) else {
        let Handler { attrs, vis, sig, body } = handler;
        return untouched(errors, &quote!(#(#attrs)* #vis #sig #body));
    };
    untouched(errors, &stub)
}
