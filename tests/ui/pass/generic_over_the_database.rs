//! One handler for every database, under each attribute, as functions and as methods.

#![deny(warnings)]

use idem_runtime::{Engine, Store, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Encode, Executor, IntoArguments, Sqlite, Transaction, Type};

struct Paid {
    id: String,
}

#[idempotent(key(msg.id), retention = "7d")]
async fn keyed<DB: Store>(tx: &mut Transaction<'_, DB>, msg: &Paid) -> Result<(), sqlx::Error>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
    DB::Arguments: IntoArguments<DB>,
{
    sqlx::query("SELECT ?").bind(&*msg.id).execute(&mut **tx).await.map(drop)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural<DB>(tx: &mut Transaction<'_, DB>, msg: Paid) -> Result<String, sqlx::Error>
where
    DB: idem_runtime::Store,
{
    let _ = tx;
    Ok(msg.id)
}

struct Ledger<DB> {
    databases: std::marker::PhantomData<fn() -> DB>,
}

impl<DB: Store> Ledger<DB> {
    #[idempotent(key(msg.id), retention = "7d", name = "ledger.write")]
    async fn write(&self, _tx: &mut Transaction<'_, DB>, msg: &Paid) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "ledger.ping")]
    async fn ping(&self, _msg: &Paid) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

fn main() {
    async fn calls(engine: Engine<Sqlite>) {
        let msg = Paid { id: "1".into() };
        let ledger = Ledger::<Sqlite> { databases: std::marker::PhantomData };
        let _ = keyed(&engine, &msg).await;
        let _ = ledger.write(&engine, &msg).await;
        let _ = ledger.ping(&engine, &msg).await;
        let _ = natural(&engine, msg).await;
    }
    let _ = calls;
}
