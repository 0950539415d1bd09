//! A crate that shadows every name that generated code could lean on, and denies what it could trip over [B40].

#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, elided_lifetimes_in_paths)]
#![deny(single_use_lifetimes, unused_lifetimes, unused_results, missing_debug_implementations, unnameable_types)]
#![deny(rust_2018_idioms, let_underscore_drop, trivial_casts, trivial_numeric_casts, explicit_outlives_requirements)]

mod core {}
mod std {}
mod alloc {}
mod inventory {}
mod idem_macros {}

/// Handlers among names of theirs.
pub mod handlers {
    use ::idem_runtime::idempotent;
    use ::std::string::String;

    mod sqlx {}
    mod idem_runtime {}
    mod serde {}
    /// Not the prelude's.
    pub type Result<T> = ::core::result::Result<T, ::sqlx::Error>;
    #[allow(dead_code)]
    type Box<T> = ::core::option::Option<T>;
    #[allow(dead_code)]
    #[derive(Debug)]
    struct Key;
    #[allow(dead_code)]
    trait Clone {}
    #[allow(dead_code)]
    trait Handler {}
    #[allow(dead_code)]
    #[derive(Debug)]
    enum Verdict {
        Ok,
        Err,
        Some,
        None,
    }
    #[allow(unused_imports)]
    use Verdict::*;

    /// A message.
    #[derive(Debug)]
    pub struct Paid {
        /// Its identifier.
        pub id: String,
        /// What it costs.
        pub cents: i64,
    }

    /// Takes a borrowed message.
    #[idempotent(key(msg.id), fingerprint(msg.cents), retention = "7d")]
    pub async fn borrowed(tx: &mut ::sqlx::Transaction<'_, ::sqlx::Sqlite>, msg: &Paid) -> Result<u8> {
        let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
        Result::Ok(7)
    }

    /// Takes it over, and hands its result on.
    #[idempotent(key = "msg.id, msg.cents as u32", retention = "7d", replay)]
    pub async fn moved(tx: &mut ::sqlx::SqliteConnection, mut msg: Paid) -> Result<u8> {
        msg.cents += 1;
        let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(tx).await?;
        Result::Ok(7)
    }

    /// Has methods.
    #[derive(Debug)]
    pub struct Ledger;

    impl Ledger {
        /// Is generic.
        #[idempotent(key(id), retention = "7d", name = "ledger.write")]
        pub async fn write<T: ::idem_runtime::KeyPart + ::core::marker::Sync>(
            &self,
            tx: &mut ::sqlx::Transaction<'_, ::sqlx::Sqlite>,
            id: &T,
        ) -> Result<()> {
            let _done = ::sqlx::query("SELECT 1").execute(&mut **tx).await?;
            let _id = id;
            Result::Ok(())
        }
    }
}

/// Re-exports the runtime, as a crate of common dependencies does.
pub mod common {
    pub use ::idem_runtime as idem;
}

/// Uses it.
#[common::idem::idempotent(key(id), retention = "7d", crate = crate::common::idem)]
pub async fn elsewhere(tx: &mut ::sqlx::SqliteConnection, id: &u64) -> handlers::Result<()> {
    let _done = ::sqlx::query("SELECT ?").bind(::core::clone::Clone::clone(id) as i64).execute(tx).await?;
    handlers::Result::Ok(())
}

async fn run() {
    use ::core::convert::Into;

    let pool = ::sqlx::SqlitePool::connect("sqlite::memory:").await.unwrap();
    ::idem_runtime::migrate(&pool).await.unwrap();
    let engine = ::idem_runtime::Engine::start(pool).await.unwrap();
    let msg = || handlers::Paid { id: "e1".into(), cents: 7 };
    ::core::assert!(handlers::borrowed(&engine, &msg()).await.unwrap().is_applied());
    ::core::assert!(engine.handle::<handlers::borrowed>(&msg(), &()).await.unwrap().is_duplicate());
    ::core::assert!(handlers::moved(&engine, msg()).await.unwrap().is_applied());
    ::core::assert!(handlers::Ledger.write(&engine, &7_u8).await.unwrap().is_applied());
    ::core::assert!(elsewhere(&engine, &7).await.unwrap().is_applied());
}

fn main() {
    ::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run());
}
