//! Futures of every kind of handler are sent to other threads, and consumers hold handlers behind one boxed type.

#![deny(warnings)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use idem_runtime::{Engine, Handler, HandlerResult, at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

struct Paid {
    id: String,
}

#[idempotent(key(msg.id), retention = "7d")]
async fn keyed(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT ?").bind(&msg.id).execute(&mut **tx).await.map(drop)
}

#[idempotent(key(msg.id), retention = "7d")]
async fn moved(_tx: &mut Transaction<'_, Sqlite>, msg: Paid, state: Arc<str>) -> Result<(Paid, Arc<str>), sqlx::Error> {
    Ok((msg, state))
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT ?").bind(&msg.id).execute(&mut **tx).await.map(drop)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(_msg: &Paid) -> Result<(), sqlx::Error> {
    std::future::ready(Ok(())).await
}

type Run = Box<dyn for<'a> Fn(&'a Engine<Sqlite>, &'a Paid) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> + Send>;

fn run<H>() -> Run
where
    H: Handler<Sqlite, Message = Paid, State = (), Returned: HandlerResult<Ok: Send, Err: Send>>,
{
    Box::new(|engine, msg| Box::pin(async move { engine.handle::<H>(msg, &()).await.is_ok() }))
}

trait Router {
    fn route(&self, msg: Paid) -> impl Future<Output = bool> + Send;
}

impl Router for Engine<Sqlite> {
    async fn route(&self, msg: Paid) -> bool {
        keyed(self, &msg).await.is_ok()
            && natural(self, &msg).await.is_ok()
            && ping(self, &msg).await.is_ok()
            && moved(self, msg, "state".into()).await.is_ok()
    }
}

fn main() {
    let consumers: Vec<Run> = vec![run::<keyed>(), run::<natural>(), run::<ping>()];
    assert_eq!(consumers.len(), 3);
}
