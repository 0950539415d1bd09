//! A `macro_rules!` that is given both the parameter's name and the string that mentions it.

#![deny(warnings)]

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: String,
}

macro_rules! handler {
    ($name:ident($tx:ident, $msg:ident: $ty:ty) by $key:literal $body:block) => {
        #[idempotent(key = $key, retention = "7d")]
        async fn $name($tx: &mut Transaction<'_, Sqlite>, $msg: &$ty) -> Result<(), sqlx::Error> $body
    };
}

handler!(credit(_tx, paid: Paid) by "paid.id" { Ok(()) });

fn main() {
    assert_eq!(credit::META.key, ["paid.id"]);
}
