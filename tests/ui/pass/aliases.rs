//! Transaction, message and result under other names.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx as db;

type Tx<'c> = db::Transaction<'c, db::Sqlite>;
type TxOf<'c, DB> = db::Transaction<'c, DB>;
type Conn = db::SqliteConnection;
type Done<T = ()> = core::result::Result<T, Box<dyn core::error::Error + Send + Sync>>;
type Id = str;

mod other {
    #[derive(Debug)]
    pub(crate) struct Failed;
    pub(crate) type Result<T, E = Failed> = std::result::Result<T, E>;
}

#[idempotent(key(id), retention = "7d")]
async fn transaction(_tx: &mut Tx<'_>, id: &Id) -> Done {
    Ok(())
}

#[idempotent(key(id), retention = "7d")]
async fn of_a_database(_tx: &mut TxOf<'_, db::Sqlite>, id: &Id) -> other::Result<u8> {
    Ok(7)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn connection(_conn: &mut Conn, _id: &Id) -> Done<String> {
    Ok(String::new())
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(_id: &Id) -> other::Result<()> {
    Err(other::Failed)
}

#[idempotent(key(id), retention = "7d")]
async fn anyhow(_tx: &mut Tx<'_>, id: &Id) -> ::anyhow::Result<()> {
    Ok(())
}

fn main() {
    let _ = (transaction::META, of_a_database::META, connection::META, ping::META, anyhow::META);
}
