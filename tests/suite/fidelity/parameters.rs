//! Patterns, moved messages, states, connections and aliases.

use idem_runtime::{Engine, Handler, HandlerResult, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, SqliteConnection, Transaction};

use super::{Kind, Paid, applies_once, paid, write};

type Tx<'c> = Transaction<'c, Sqlite>;
type Done<T = ()> = Result<T, sqlx::Error>;

#[idempotent(key(msg.id), retention = "1d", name = "parameters.mut_owned")]
async fn mut_owned(tx: &mut Tx<'_>, mut msg: Paid) -> Done {
    msg.id.push_str(" changed");
    write(tx, &msg.id).await
}

#[idempotent(key(id, *kind as u8), retention = "1d", name = "parameters.tuple")]
async fn tuple(tx: &mut Tx<'_>, (id, kind): (String, Kind)) -> Done<Kind> {
    write(tx, &id).await?;
    Ok(kind)
}

#[idempotent(key(id), retention = "1d", name = "parameters.pattern")]
async fn pattern(tx: &mut Tx<'_>, Paid { id, .. }: &Paid) -> Done {
    write(tx, id).await
}

#[idempotent(key(first, second), retention = "1d", name = "parameters.nested")]
async fn nested(tx: &mut Tx<'_>, whole @ (mut first, (second, _)): (u8, (&str, u64))) -> Done {
    first += 1;
    write(tx, &format!("{first} {second} {}", whole.0)).await
}

#[idempotent(key(id), retention = "1d", name = "parameters.reference")]
async fn reference(tx: &mut Tx<'_>, (&id, _): (&u64, u8)) -> Done {
    write(tx, &format!("reference {id}")).await
}

#[idempotent(key(id), retention = "1d", name = "parameters.ignored")]
async fn ignored(tx: &mut Tx<'_>, _: &Paid, id: &u64) -> Done {
    write(tx, &format!("ignored {id}")).await
}

/// Only the key reads the message.
#[idempotent(key(msg.id, msg.kind as u8), retention = "1d", name = "parameters.only_in_key")]
async fn only_in_key(tx: &mut Tx<'_>, msg: &Paid) -> Done {
    write(tx, "only in key").await
}

#[idempotent(key(id), retention = "1d", name = "parameters.connection")]
async fn connection(conn: &mut SqliteConnection, id: &str) -> Done {
    write(conn, id).await
}

#[idempotent(key(id), retention = "1d", name = "parameters.states")]
async fn states(tx: &mut Tx<'_>, id: &u64, shared: &str, counter: &mut u32, owned: Vec<u8>) -> Done {
    *counter += 1;
    write(tx, &format!("{id} {shared} {counter} {}", owned.len())).await
}

trait Gateway: Sync {
    fn name(&self) -> &str;
}

impl Gateway for String {
    fn name(&self) -> &str {
        self
    }
}

#[idempotent(key(id), retention = "1d", name = "parameters.dyn_state")]
async fn dyn_state(tx: &mut Tx<'_>, id: &str, gateway: &(dyn Gateway + Send)) -> Done {
    write(tx, &format!("{id} {}", gateway.name())).await
}

#[tokio::test]
async fn patterns_and_states_apply_once() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        applies_once!(db, "e1 changed", mut_owned(&engine, paid("e1")));
        applies_once!(db, "t1", tuple(&engine, ("t1".to_owned(), Kind::Cash)));
        applies_once!(db, "p1", pattern(&engine, &paid("p1")));
        applies_once!(db, "2 n 1", nested(&engine, (1, ("n", 9))));
        applies_once!(db, "reference 3", reference(&engine, (&3, 4)));
        applies_once!(db, "ignored 3", ignored(&engine, &paid("any"), &3));
        applies_once!(db, "only in key", only_in_key(&engine, &paid("k1")));
        applies_once!(db, "c1", connection(&engine, "c1"));
        let mut counter = 0;
        applies_once!(db, "7 shared 1 2", states(&engine, &7, "shared", &mut counter, vec![1, 2]));
        assert_eq!(counter, 1);
    })
    .await;
}

#[test]
fn the_key_is_made_of_what_patterns_bind() {
    assert_eq!(tuple::key(&("t".to_owned(), Kind::Cash)).unwrap().as_str(), "1/s:t/i:2");
    assert_eq!(nested::key(&(1, ("n", 9))).unwrap().as_str(), "1/i:1/s:n");
    assert_eq!(only_in_key::key(&paid("k")).unwrap().as_str(), "1/s:k/i:1");
}

#[tokio::test]
async fn the_plain_body_runs_in_a_transaction_of_the_callers() {
    Db::<Sqlite>::test(async |db| {
        let mut tx = db.pool(1).await.begin().await.unwrap();
        pattern::apply_in(&mut tx, &paid("plain")).await.unwrap();
        connection::apply_in(&mut tx, "plain").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!((db.effects("plain").await, db.keys().await), (2, 0));
    })
    .await;
}

type Consumer = Box<dyn for<'a> Fn(&'a Engine<Sqlite>, &'a Paid) -> idem_runtime_future::Boxed<'a> + Send + Sync>;

/// What a router does: it keeps handlers of one message type behind one boxed type.
mod idem_runtime_future {
    pub(super) type Boxed<'a> = std::pin::Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

fn consumer<H>() -> Consumer
where
    H: Handler<Sqlite, Message = Paid, State = (), Returned: HandlerResult<Ok: Send, Err: Send + std::fmt::Debug>>,
{
    Box::new(|engine, msg| Box::pin(async move { engine.handle::<H>(msg, &()).await.unwrap().is_applied() }))
}

#[tokio::test]
async fn handlers_are_consumed_behind_a_box_and_in_spawned_tasks() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(2).await;
        let consumers = [consumer::<pattern>(), consumer::<only_in_key>()];
        for consume in &consumers {
            assert!(consume(&engine, &paid("boxed")).await);
            assert!(!consume(&engine, &paid("boxed")).await);
        }
        let task = tokio::spawn({
            let engine = engine.clone();
            async move {
                let gateway: &(dyn Gateway + Send) = &"gate".to_owned();
                engine.handle::<dyn_state>("spawned", gateway).await.unwrap().is_applied()
            }
        });
        assert!(task.await.unwrap());
        assert_eq!(db.effects("spawned gate").await, 1);
        let moved = tokio::spawn(async move { mut_owned(&engine, paid("moved")).await.unwrap().is_applied() });
        assert!(moved.await.unwrap());
    })
    .await;
}
