//! Fixtures of the tests: a database per test, and a handler that does what its message says.

#![allow(clippy::disallowed_types, reason = "tests put SQL together from their own constants")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a fixture that cannot be set up is a failed test")]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "read by the tests alone")]

mod batched;
mod consumed;
mod db;
mod logs;
mod script;
mod stores;

pub use batched::{Batches, Detailed, Slices};
pub use consumed::{Consumes, Gate, Wire};
pub use db::Db;
pub use logs::Logs;
pub use script::{Delivered, Message, Step, deliver, perform, say};
pub use stores::{Folder, TestStore, without_server};

/// The Rust blocks of the documentation are compiled and run. The README's are the runtime crate's own.
#[cfg(doctest)]
mod docs {
    #[doc = include_str!("../../docs/adapters.md")]
    mod adapters {}
    #[doc = include_str!("../../docs/ARCHITECTURE.md")]
    mod architecture {}
    #[doc = include_str!("../../docs/catalog.md")]
    mod catalog {}
    #[doc = include_str!("../../docs/cli.md")]
    mod cli {}
    #[doc = include_str!("../../docs/http.md")]
    mod http {}
    #[doc = include_str!("../../docs/retention.md")]
    mod retention {}
    #[doc = include_str!("../../docs/telemetry.md")]
    mod telemetry {}

    // The attributes' references, whose examples their own crate cannot run.
    #[doc = include_str!("../../idem-macros/src/at_most_once.md")]
    mod at_most_once {}
    #[doc = include_str!("../../idem-macros/src/idempotent.md")]
    mod idempotent {}
    #[doc = include_str!("../../idem-macros/src/naturally_idempotent.md")]
    mod naturally_idempotent {}
    #[doc = include_str!("../../idem-macros/src/derive/key_part.md")]
    mod key_part {}
}
