//! The attribute in every form that people write functions in [B40, B42, B04, B05, B13]. Clippy's pedantic lints are
//! errors here: generated code must not trip over what its user has turned on.

#![deny(clippy::pedantic, missing_debug_implementations, unreachable_pub, unused_qualifications, single_use_lifetimes)]
#![deny(unused, unused_lifetimes, elided_lifetimes_in_paths, unused_results)]

mod attributes;
mod errors;
mod generics;
mod made_by_macros;
mod methods;
mod names;
mod options;
mod parameters;
mod registered;
mod unkeyed;

use sqlx::SqliteConnection;

/// The effect that all handlers here have.
async fn write(conn: &mut SqliteConnection, note: &str) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effect (note) VALUES (?)").bind(note).execute(conn).await.map(drop)
}

/// An event of the tests.
#[derive(Debug, Clone)]
struct Paid {
    id: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Card = 1,
    Cash = 2,
}

fn paid(id: &str) -> Paid {
    Paid { id: id.to_owned(), kind: Kind::Card }
}

/// Delivers twice: the first is applied, the second is a duplicate, and there is one effect with the note.
macro_rules! applies_once {
    ($db:expr, $note:expr, $delivery:expr) => {{
        assert!($delivery.await.unwrap().is_applied());
        assert!($delivery.await.unwrap().is_duplicate());
        assert_eq!($db.effects($note).await, 1);
    }};
}
use applies_once;
