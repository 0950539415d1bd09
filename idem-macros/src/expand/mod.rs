//! Prints the generated code, and is the only module that quotes. It asks questions and judges nothing.
//!
//! A handler becomes a function (`wrapper`, with `run` inside and `documentation` above), a type of the same name (`body`, with the key from `key`), its entry in
//! the registry (`meta`) and what consumers run (`implementation`). A method has room for functions only: it becomes
//! the wrapper, with everything else inside, and the body beside it.

mod attributes;
mod body;
mod documentation;
mod implementation;
mod key;
mod meta;
pub(crate) mod paths;
mod run;
#[cfg(test)]
mod tests;
mod wrapper;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Type;
use syn::spanned::Spanned;

use crate::args::Args;
use crate::handler::{Handler, Param};
use paths::Runtime;

/// The type parameter for the store of a handler that has no transaction to name it.
const STORE: &str = "__IdemStore";

/// A declaration that can be printed: its signature is a handler's.
struct Declaration<'a> {
    rt: Runtime<'a>,
    private: TokenStream,
    args: &'a Args,
    handler: &'a Handler,
    /// The type behind the transaction's `&mut`; `None` for a handler that gets none.
    tx: Option<&'a Type>,
    output: &'a Type,
    params: Vec<Param<'a>>,
    refused: bool,
}

/// The whole handler; `None` if the signature is not a handler's.
pub(crate) fn handler(args: &Args, handler: &Handler) -> Option<TokenStream> {
    Declaration::of(args, handler, false).map(|declaration| declaration.print())
}

/// A handler that neither runs nor registers, with every name and type that callers see.
pub(crate) fn refused(args: &Args, handler: &Handler) -> Option<TokenStream> {
    Declaration::of(args, handler, true).map(|declaration| declaration.print())
}

/// Whether consumers can run the handler; also if the signature is not a handler's, which is refused by itself.
pub(crate) fn can_be_consumed(args: &Args, handler: &Handler) -> bool {
    Declaration::of(args, handler, false).is_none_or(|declaration| declaration.runnable().is_some())
}

impl<'a> Declaration<'a> {
    fn of(args: &'a Args, handler: &'a Handler, refused: bool) -> Option<Self> {
        let rt = Runtime::new(args.krate.as_ref().map(|given| &given.value));
        let private = rt.private();
        let (tx, output, params) = (handler.transaction(), handler.output()?, handler.params());
        (tx.is_some() == handler.has_transaction && !params.is_empty()).then_some(Self {
            rt,
            private,
            args,
            handler,
            tx,
            output,
            params,
            refused,
        })
    }

    fn print(&self) -> TokenStream {
        let wrapper = self.wrapper();
        if self.handler.receiver().is_some() {
            let body = self.body_beside();
            return quote!(#wrapper #body);
        }
        let (ty, facts, implementation) = (self.ty(), self.facts(), self.implementation());
        quote!(#wrapper #ty #facts #implementation)
    }

    /// An item of the type with the handler's name.
    fn item(&self, name: &str) -> TokenStream {
        let (ty, item) = (self.handler.name(), Ident::new(name, Span::mixed_site()));
        quote!(#ty::#item)
    }

    /// The type and const parameters, spelled out for a call that could not infer them.
    fn turbofish(&self) -> Option<TokenStream> {
        let names = self.handler.generic_args();
        (!names.is_empty()).then(|| quote!(::<#(#names),*>))
    }

    /// Silences what would be said of a declaration that is refused anyway.
    fn quiet(&self) -> Option<TokenStream> {
        self.refused.then(|| quote!(#[allow(unused, clippy::all)]))
    }
}

/// A name that cannot meet any of the user's.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The place of a type, for tokens that lints still take for a macro's.
fn at(ty: &Type) -> Span {
    Span::call_site().located_at(ty.span())
}
