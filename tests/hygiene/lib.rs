//! A user's crate with hostile settings: it shadows the prelude, renames the runtime, and turns whatever the compiler or
//! clippy can say into an error. Compiled in both editions; `cargo clippy` judges it with the workspace.

#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, future_incompatible, nonstandard_style, rust_2018_idioms, unused, keyword_idents)]
// In the crate of edition 2021: what would change its meaning in edition 2024.
#![deny(rust_2024_compatibility)]
#![deny(missing_docs, missing_debug_implementations, missing_copy_implementations, unreachable_pub, unnameable_types)]
#![deny(elided_lifetimes_in_paths, single_use_lifetimes, unused_lifetimes, redundant_lifetimes)]
#![deny(explicit_outlives_requirements, impl_trait_redundant_captures, let_underscore_drop, meta_variable_misuse)]
#![deny(trivial_casts, trivial_numeric_casts, unit_bindings, unsafe_op_in_unsafe_fn, variant_size_differences)]
#![deny(unused_qualifications, unused_results, unused_import_braces, unused_extern_crates, unused_macro_rules)]
#![deny(absolute_paths_not_starting_with_crate, macro_use_extern_crate, non_ascii_idents, redundant_imports)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::cargo)]
#![deny(clippy::allow_attributes, clippy::allow_attributes_without_reason, clippy::unwrap_used, clippy::expect_used)]
#![deny(clippy::panic, clippy::print_stdout, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
#![deny(clippy::shadow_unrelated, clippy::shadow_same, clippy::shadow_reuse, clippy::clone_on_ref_ptr)]
#![deny(clippy::missing_docs_in_private_items, clippy::mem_forget, clippy::str_to_string, clippy::as_conversions)]
#![expect(clippy::multiple_crate_versions, clippy::cargo_common_metadata, reason = "these judge the workspace")]

pub mod functions;
pub mod made;
pub mod methods;
pub mod names;
pub mod unkeyed;

/// Defines empty modules.
macro_rules! modules {
    ($($name:ident)*) => {
        $(
            /// Not the crate that generated code could mean.
            mod $name {}
        )*
    };
}

modules! { core std alloc inventory idem_runtime idem_macros futures_util tokio }

/// The runtime below a path of the crate's own.
pub mod common {
    pub use ::durable as idem;
}

/// Not the prelude's.
pub type Result<T> = ::core::result::Result<T, ::sqlx::Error>;

/// The transaction of every handler here.
pub type Tx<'c> = ::sqlx::Transaction<'c, ::sqlx::Sqlite>;

/// A message.
#[derive(Debug, Clone, ::serde::Serialize, ::serde::Deserialize)]
pub struct Paid {
    /// Identifies the payment.
    pub id: ::std::string::String,
    /// What was paid.
    pub cents: i64,
}
