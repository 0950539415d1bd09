//! Methods, under each attribute.

use ::durable::{at_most_once, idempotent, naturally_idempotent, KeyPart};
use ::std::string::String;
use ::std::sync::Arc;

use crate::{Paid, Result, Tx};

/// Has methods.
#[derive(Debug, Clone)]
pub struct Ledger<T> {
    /// Whose it is.
    tenant: T,
}

impl<T: KeyPart + ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync> Ledger<T> {
    /// Opens one.
    pub const fn new(tenant: T) -> Self {
        Self { tenant }
    }

    /// Writes.
    #[idempotent(key(self.tenant, msg.id), retention = "7d", name = "ledger.write", crate = ::durable)]
    pub async fn write(&self, tx: &mut Tx<'_>, msg: &Paid) -> Result<T> {
        let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
        Result::Ok(self.tenant.clone())
    }

    /// Writes with a shared ledger.
    #[idempotent(key(id), retention = "7d", replay, name = "ledger.write_shared", crate = ::durable)]
    pub async fn write_shared<I>(self: Arc<Self>, tx: &mut ::sqlx::SqliteConnection, id: I) -> Result<String>
    where
        I: KeyPart + ::core::marker::Send + ::core::marker::Sync,
    {
        let _done = ::sqlx::query("SELECT ?").bind(1).execute(tx).await?;
        let _id = (id, self);
        Result::Ok(String::new())
    }

    /// Sets.
    #[naturally_idempotent(reason = "sets the price to the message's value", name = "ledger.set", crate = ::durable)]
    pub async fn set(&self, tx: &mut Tx<'_>, msg: Paid) -> Result<(T, Paid)> {
        let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
        Result::Ok((self.tenant.clone(), msg))
    }

    /// Pings.
    #[at_most_once(
        reason = "the next ping tells as much",
        loss = "a single ping",
        name = "ledger.ping",
        crate = ::durable
    )]
    pub async fn ping(self: Arc<Self>, mut msg: Paid) -> Result<i64> {
        msg.cents = ::core::future::ready(msg.cents).await;
        let _tenant = &self.tenant;
        Result::Ok(msg.cents)
    }
}
