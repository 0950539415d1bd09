//! The derive on whatever an editor or a typing hand gives it.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use proc_macro2::TokenStream;

use super::key_part;

fn expand(item: &str) -> String {
    key_part(item.parse().unwrap()).to_string()
}

#[test]
fn one_mistake_is_one_error_and_the_implementation_stays() {
    for fine in [
        "struct Id(String);",
        "struct Id { id: u64 }",
        "struct Id<'a, T: Kind + ?Sized, const N: usize>(PhantomData<T>, &'a str) where T: Sized;",
        "enum Kind { Paid, #[key(rename = \"refunded\",)] Reimbursed, Void() }",
        "#[key(crate = common::idem)] #[doc = \"key\"] enum Kind { Paid }",
    ] {
        assert!(!expand(fine).contains("compile_error"), "{fine}: {}", expand(fine));
    }
    for wrong in [
        "struct Id;",
        "struct Id(PhantomData<T>);",
        "struct Id(u8, u8, u8);",
        "enum Kind {}",
        "union Id { a: u8 }",
        "enum Kind { Paid(u8), Void }",
        "enum Kind { #[key(rename = \"B\")] A, B }",
        "enum Kind { #[key(rename = \"\")] A, B }",
        "enum Kind { #[key(rename = \"a\", rename = \"b\")] A, B }",
        "enum Kind { #[key(rename = \"a\")] #[key(rename = \"b\")] A, B }",
        "enum Kind { #[key(rename)] A, B }",
        "enum Kind { #[key(rename = a)] A, B }",
        "enum Kind { #[key(rename = \"a\" \"b\")] A, B }",
        "enum Kind { #[key(renam = \"a\")] A, B }",
        "enum Kind { #[key(rename(\"a\"))] A, B }",
        "enum Kind { #[key(\"a\")] A, B }",
        "enum Kind { #[key()] A, B }",
        "enum Kind { #[key] A, B }",
        "enum Kind { #[key = \"a\"] A, B }",
        "enum Kind { #[key(crate = common)] A, B }",
        "#[key(crate = 7)] enum Kind { A }",
        "#[key(crate)] enum Kind { A }",
        "#[key(rename = \"id\")] struct Id(u8);",
        "struct Id(#[key(rename = \"id\")] u8);",
    ] {
        let out = expand(wrong);
        assert_eq!(out.matches("compile_error").count(), 1, "{wrong}: {out}");
        assert!(out.contains("KeyPart for"), "{wrong}: {out}");
    }
}

/// Thousands of mangled types: never a panic, always an implementation or an error.
#[test]
fn whatever_is_typed_gives_code_or_errors() {
    const PIECES: [&str; 32] = [
        "struct",
        "enum",
        "union",
        "Id",
        "Kind",
        "A",
        "B",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "T",
        "'a",
        "const",
        "where",
        ":",
        ",",
        ";",
        "=",
        "#[key(rename = \"a\")]",
        "#[key(crate = c)]",
        "#[key",
        "\"\"",
        "rename",
        "f64",
        "PhantomData",
        "pub",
        "&",
    ];
    const ITEMS: [&str; 4] =
        ["struct Id ( HERE String ) ;", "enum Kind { A , HERE B }", "HERE struct Id < T > { id : T }", "HERE"];
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let piece = |seed: u32, at: u32| PIECES[usize::try_from(hasher.hash_one((seed, at)) % 32).unwrap()];
    let mut read = 0;
    for seed in 0..8_000 {
        let mangled: Vec<_> = (0..1 + seed % 7).map(|at| piece(seed, at)).collect();
        let item = ITEMS[usize::try_from(seed % 4).unwrap()].replace("HERE", &mangled.join(" "));
        let Ok(tokens) = item.parse::<TokenStream>() else {
            continue;
        };
        let out = key_part(tokens).to_string();
        assert!(out.contains("compile_error") || out.contains("KeyPart for"), "{item}\n{out}");
        read += 1;
    }
    assert!(read > 1_500, "only {read} of the types could be read as tokens");
}
