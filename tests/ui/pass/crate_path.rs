//! The runtime under another name: a re-export, a renamed `extern crate`, and relative paths.

#![deny(warnings)]

extern crate idem_runtime as durable;

mod common {
    pub(crate) mod deep {
        pub(crate) use idem_runtime as idem;
    }
}

mod handlers {
    use super::common::deep::idem::{at_most_once, idempotent, naturally_idempotent};
    use sqlx::{Sqlite, Transaction};

    #[idempotent(key(id), retention = "7d", crate = crate::common::deep::idem)]
    pub(crate) async fn from_root(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[idempotent(crate = super::common::deep::idem, key(id), retention = durable::Retention::days(7))]
    pub(crate) async fn from_above(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[naturally_idempotent(reason = "sets the price to the message's value", crate = durable)]
    pub(crate) async fn natural(_tx: &mut Transaction<'_, Sqlite>, _id: &str) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", crate = ::durable)]
    pub(crate) async fn ping(_id: &str) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

fn main() {
    assert_eq!(handlers::from_root::META.retention, handlers::from_above::META.retention);
    assert_eq!([handlers::natural::META.name, handlers::ping::META.name], ["natural", "ping"]);
}
