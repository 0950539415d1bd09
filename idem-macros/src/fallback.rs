//! What is printed after a refusal: every error, and enough of the handler that nothing else fails because of it.

use proc_macro2::TokenStream;

use crate::args::Args;
use crate::expand;
use crate::handler::Handler;

/// The errors and the item as it came.
pub(crate) fn untouched(errors: Option<syn::Error>, item: &TokenStream) -> TokenStream {
    let mut tokens = errors.map(|errors| errors.to_compile_error()).unwrap_or_default();
    tokens.extend(item.clone());
    tokens
}

/// The errors, the user's body, and everything that callers can be checked against.
pub(crate) fn refused(errors: Option<syn::Error>, args: &Args, handler: &Handler, item: &TokenStream) -> TokenStream {
    match expand::refused(args, handler) {
        // There is no room for the type.
        _ if handler.is_associated() => untouched(errors, item),
        Some(declaration) => untouched(errors, &declaration),
        None => untouched(errors, item),
    }
}
