//! A connection in the transaction's place, of each store that is linked.

#![deny(warnings)]

use idem_runtime::{Engine, idempotent, naturally_idempotent};
use sqlx::{Sqlite, SqliteConnection};

#[idempotent(key(id), retention = "7d")]
async fn keyed(conn: &mut SqliteConnection, id: &str) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT ?").bind(id).execute(conn).await.map(drop)
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(conn: &mut sqlx::SqliteConnection, id: &str) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT ?").bind(id).execute(&mut *conn).await?;
    sqlx::query("SELECT ?").bind(id).execute(conn).await.map(drop)
}

#[idempotent(key(id), retention = "7d")]
async fn through_the_trait(conn: &mut <Sqlite as sqlx::Database>::Connection, id: &str) -> Result<(), sqlx::Error> {
    keyed::apply_in(conn, id).await
}

fn main() {
    async fn calls(engine: Engine<Sqlite>) {
        let _ = (keyed(&engine, "1").await, natural(&engine, "1").await, through_the_trait(&engine, "1").await);
    }
    let _ = calls;
}
