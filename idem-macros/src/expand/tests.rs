//! Generated code as files, for readers, for `tests/compile-time/run`, and so that a change of it is seen.

use std::path::{Path, PathBuf};
use std::{env, fs};

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, File, ImplItem, Item, Meta};

use crate::semantics::Semantics;
use crate::transform;

const EXAMPLES: [&str; 9] = [
    "function",
    "batch",
    "method",
    "generic",
    "moved_and_replayed",
    "external",
    "at_most_once",
    "naturally_idempotent",
    "refused",
];

/// `IDEM_BLESS=1 cargo test -p idem-macros` writes the files anew.
#[test]
fn examples_become_what_their_files_say() {
    for example in EXAMPLES {
        let generated = prettyplease::unparse(&expanded(&read(&file(example))));
        let file = file(&format!("{example}.expanded"));
        if env::var_os("IDEM_BLESS").is_some() {
            fs::write(&file, &generated).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(generated, expected, "{example}: if that is meant, bless it with IDEM_BLESS=1");
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/expand/examples/{name}.rs"))
}

fn read(file: &Path) -> File {
    syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The file with its attributes at work, as the compiler would see it.
fn expanded(written: &File) -> File {
    let items = written.items.iter().map(|item| match item {
        Item::Fn(function) => transformed(&function.attrs, item),
        Item::Impl(block) => {
            let items = block.items.iter().map(|item| match item {
                ImplItem::Fn(method) => transformed(&method.attrs, item),
                item => item.to_token_stream(),
            });
            let ty = &block.self_ty;
            quote!(impl #ty { #(#items)* })
        }
        item => item.to_token_stream(),
    });
    syn::parse2(quote!(#(#items)*)).unwrap()
}

fn transformed(attrs: &[Attribute], item: &impl ToTokens) -> TokenStream {
    let semantics_of =
        |attr: &Attribute| Semantics::ALL.into_iter().find(|this| attr.path().is_ident(this.attribute()));
    let (attr, semantics) = attrs.iter().find_map(|attr| Some((attr, semantics_of(attr)?))).unwrap();
    let Meta::List(list) = &attr.meta else { panic!("an attribute with arguments") };
    let (attr, item) = (attr.to_token_stream().to_string(), item.to_token_stream().to_string());
    transform(semantics, list.tokens.clone(), &item.replacen(&attr, "", 1).parse().unwrap())
}
