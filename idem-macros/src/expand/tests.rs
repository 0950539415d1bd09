//! The generated code as a file, for readers, for `tests/compile-time/run`, and so that a change of it is seen.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use proc_macro2::TokenStream;
use syn::ItemFn;

use crate::semantics::Semantics;
use crate::transform;

/// What is left of code when spaces, and whatever else rustfmt decides, do not count.
fn bare(code: &str) -> String {
    let tokens: TokenStream = code.parse().unwrap();
    let mut code = tokens.to_string();
    code.retain(|letter| !letter.is_whitespace());
    [",)", ",}", ",]", ",>"].iter().fold(code, |code, end| code.replace(end, &end[1..]))
}

/// `IDEM_BLESS=1 cargo test -p idem-macros` writes it anew.
#[test]
fn the_example_becomes_what_its_file_says() {
    let mut written: ItemFn = syn::parse_str(include_str!("example/written.rs")).unwrap();
    let place = written.attrs.iter().position(|attr| attr.path().is_ident("idempotent")).unwrap();
    let args = written.attrs.remove(place).meta.require_list().unwrap().tokens.clone();
    let generated = transform(Semantics::Idempotent, args, &quote::quote!(#written)).to_string();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/expand/example/generated.rs");
    if env::var_os("IDEM_BLESS").is_some() {
        fs::write(&file, &generated).unwrap();
        let formatted = Command::new("rustfmt").args(["--edition", "2024"]).arg(&file).status();
        assert!(formatted.unwrap().success());
    }
    assert_eq!(bare(&generated), bare(&fs::read_to_string(&file).unwrap()), "bless it with IDEM_BLESS=1");
}
