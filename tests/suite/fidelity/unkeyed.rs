//! Handlers without a key in the forms that people write them in. An effect that is set is the same however often; one
//! that is counted shows each run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idem_runtime::{Engine, Failure, KeyPart, Outcome, Settle, at_most_once, naturally_idempotent};
use idem_tests::{Db, TestStore};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};

use super::write;

type Tx<'c> = Transaction<'c, Sqlite>;

/// The new price of a thing.
#[derive(Debug, Clone)]
struct Priced {
    id: i64,
    cents: i64,
}

fn priced(cents: i64) -> Priced {
    Priced { id: 1, cents }
}

async fn set(conn: &mut SqliteConnection, id: i64, cents: i64) -> sqlx::Result<()> {
    let sql = "INSERT INTO account VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET cents = excluded.cents";
    sqlx::query(sql).bind(id).bind(cents).execute(conn).await.map(drop)
}

async fn cents(db: &Db<Sqlite>) -> i64 {
    db.number("SELECT cents FROM account WHERE id = 1").await
}

#[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.moved")]
async fn moved(tx: &mut Tx<'_>, mut msg: Priced) -> sqlx::Result<i64> {
    msg.cents += 1;
    set(tx, msg.id, msg.cents).await?;
    Ok(msg.cents)
}

#[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.patterns")]
async fn patterns(conn: &mut SqliteConnection, Priced { id, cents }: Priced, (more, _): (i64, u8)) -> sqlx::Result<()> {
    set(conn, id, cents + more).await
}

#[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.state")]
async fn with_state(tx: &mut Tx<'_>, msg: &Priced, factor: &i64) -> sqlx::Result<()> {
    set(tx, msg.id, msg.cents * factor).await
}

#[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.generic")]
async fn generic<T, const N: usize>(tx: &mut Tx<'_>, cents: [T; N]) -> sqlx::Result<usize>
where
    T: Into<i64> + Send,
{
    for cents in cents {
        set(tx, 1, cents.into()).await?;
    }
    Ok(N)
}

/// Sets prices, under its own terms.
#[derive(Debug, Clone)]
struct Shop {
    discount: i64,
}

impl Shop {
    #[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.by_ref")]
    async fn by_ref(&self, tx: &mut Tx<'_>, msg: &Priced) -> sqlx::Result<i64> {
        set(tx, msg.id, msg.cents - self.discount).await?;
        Ok(self.discount)
    }

    #[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.by_arc")]
    async fn by_arc(self: Arc<Self>, tx: &mut Tx<'_>, Priced { id, cents }: Priced) -> sqlx::Result<()> {
        set(tx, id, cents - self.discount).await
    }

    #[naturally_idempotent(reason = "sets the price to the message's value", name = "unkeyed.by_mut")]
    async fn by_mut(&mut self, tx: &mut Tx<'_>, msg: &Priced) -> sqlx::Result<()> {
        self.discount += 1;
        set(tx, msg.id, msg.cents - self.discount).await
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "unkeyed.ping_by_ref")]
    async fn ping(&self, msg: &Priced, pool: &SqlitePool) -> sqlx::Result<i64> {
        write(&mut *pool.acquire().await?, &format!("ping {}", msg.id)).await?;
        Ok(self.discount)
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "unkeyed.ping_by_arc")]
    async fn ping_shared(self: Arc<Self>, mut msg: Priced, pool: SqlitePool) -> sqlx::Result<Priced> {
        msg.cents -= self.discount;
        write(&mut *pool.acquire().await?, &format!("shared {}", msg.cents)).await?;
        Ok(msg)
    }
}

#[tokio::test]
async fn what_is_set_is_the_same_however_often_it_is_delivered() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let mut shop = Shop { discount: 5 };
        for _ in 0..2 {
            assert_eq!(moved(&engine, priced(100)).await.unwrap(), Outcome::Applied(101));
            assert_eq!(cents(&db).await, 101);
            assert!(patterns(&engine, priced(200), (2, 0)).await.unwrap().is_applied());
            assert_eq!(cents(&db).await, 202);
            assert!(with_state(&engine, &priced(300), &2).await.unwrap().is_applied());
            assert_eq!(cents(&db).await, 600);
            assert!(engine.handle::<with_state>(&priced(300), &3).await.unwrap().is_applied());
            assert_eq!(cents(&db).await, 900);
            assert_eq!(generic(&engine, [1_i32, 2]).await.unwrap(), Outcome::Applied(2));
            assert_eq!(cents(&db).await, 2);
            assert_eq!(shop.by_ref(&engine, &priced(10)).await.unwrap(), Outcome::Applied(5));
            assert_eq!(cents(&db).await, 5);
            assert!(Arc::new(shop.clone()).by_arc(&engine, priced(20)).await.unwrap().is_applied());
            assert_eq!(cents(&db).await, 15);
        }
        assert!(shop.by_mut(&engine, &priced(10)).await.unwrap().is_applied());
        assert_eq!((cents(&db).await, shop.discount), (4, 6));
        assert_eq!((db.keys().await, db.number("SELECT count(*) FROM account").await), (0, 2));
    })
    .await;
}

/// An error that says nothing of the database's.
#[derive(Debug, PartialEq)]
struct Text(String);

impl From<sqlx::Error> for Text {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[naturally_idempotent(reason = "nothing of it is kept", name = "unkeyed.failing")]
async fn failing<E: From<sqlx::Error> + From<&'static str> + Send>(tx: &mut Tx<'_>, msg: Priced) -> Result<(), E> {
    set(tx, msg.id, msg.cents).await?;
    Err("after its effect")?
}

#[tokio::test]
async fn what_fails_is_rolled_back_and_retried() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let handled = failing::<Text>(&engine, priced(7)).await;
        assert_eq!(Settle::of(&handled), Settle::Retry);
        let Err(Failure::Handler(failed)) = handled else { panic!("must fail") };
        assert_eq!(failed.error, Text("after its effect".to_owned()));
        assert_eq!(cents(&db).await, 0);
    })
    .await;
}

#[tokio::test]
async fn the_plain_body_of_a_natural_handler_runs_in_a_transaction_of_the_callers() {
    Db::<Sqlite>::test(async |db| {
        let pool = db.pool(1).await;
        let mut tx = pool.begin().await.unwrap();
        assert_eq!(moved::apply_in(&mut tx, priced(1)).await.unwrap(), 2);
        assert_eq!(Shop { discount: 1 }.by_ref_in(&mut tx, &priced(9)).await.unwrap(), 1);
        tx.rollback().await.unwrap();
        assert_eq!(cents(&db).await, 0);
    })
    .await;
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "unkeyed.ping_generic")]
async fn ping<'m, T, E>(msg: &'m T, pool: &SqlitePool, count: &mut u32) -> Result<&'m T, E>
where
    T: KeyPart + std::fmt::Display + Sync + ?Sized,
    E: From<sqlx::Error> + Send,
{
    *count += 1;
    write(&mut *pool.acquire().await?, &format!("generic {msg}")).await?;
    Ok(msg)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping", name = "unkeyed.ping_fails")]
async fn ping_fails((note, times): (String, usize), pool: SqlitePool) -> Result<(), std::fmt::Error> {
    for _ in 0..times {
        write(&mut pool.acquire().await.unwrap(), &note).await.unwrap();
    }
    Err(std::fmt::Error)
}

/// It is the broker that delivers once. Whoever calls twice has it twice, and no key is written.
#[tokio::test]
async fn at_most_once_runs_for_each_call_and_keeps_what_it_did() {
    Db::<Sqlite>::test(async |db| {
        let (engine, pool, shop) = (db.engine(1).await, db.pool(1).await, Arc::new(Shop { discount: 5 }));
        let mut count = 0;
        for _ in 0..2 {
            assert_eq!(shop.ping(&engine, &priced(1), &pool).await.unwrap(), Outcome::Applied(5));
            let msg = Arc::clone(&shop).ping_shared(&engine, priced(7), pool.clone()).await.unwrap().into_value();
            assert_eq!(msg.unwrap().cents, 2);
            let outcome = ping::<str, sqlx::Error, _>(&engine, "text", &pool, &mut count).await;
            assert_eq!(outcome.unwrap(), Outcome::Applied("text"));
        }
        assert_eq!(
            (db.effects("ping 1").await, db.effects("shared 2").await, db.effects("generic text").await),
            (2, 2, 2)
        );
        assert_eq!(count, 2);

        let failed = ping_fails(&engine, ("half done".to_owned(), 1), pool.clone()).await;
        assert_eq!(Settle::of(&failed), Settle::Ack);
        assert!(matches!(failed, Err(Failure::Handler(failed)) if failed.handler == "unkeyed.ping_fails"));
        assert_eq!((db.effects("half done").await, db.keys().await), (1, 0));
    })
    .await;
}

#[tokio::test]
async fn the_plain_body_of_an_at_most_once_handler_needs_no_engine() {
    Db::<Sqlite>::test(async |db| {
        let pool = db.pool(1).await;
        assert_eq!(Shop { discount: 3 }.ping_apply(&priced(1), &pool).await.unwrap(), 3);
        assert!(ping_fails::apply(("plain".to_owned(), 2), pool).await.is_err());
        assert_eq!((db.effects("ping 1").await, db.effects("plain").await), (1, 2));
    })
    .await;
}

/// Fails with contention on its first run.
#[derive(Debug, Clone)]
struct Contended {
    runs: Arc<AtomicUsize>,
    sql: &'static str,
}

/// Cannot be cloned, so that its transaction cannot be run again.
#[derive(Debug)]
struct Unique(Contended);

impl Contended {
    async fn run<S: TestStore>(&self, conn: &mut S::Connection) -> sqlx::Result<usize> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let _rows = S::run(conn, &format!("INSERT INTO effect (note) VALUES ('run {run}')")).await?;
        if run == 1 {
            let _rows = S::run(conn, self.sql).await?;
        }
        Ok(run)
    }
}

#[naturally_idempotent(reason = "the tests want it again", name = "unkeyed.contended")]
async fn contended<S: TestStore>(tx: &mut Transaction<'_, S>, msg: Contended) -> sqlx::Result<usize> {
    msg.run::<S>(tx).await
}

#[naturally_idempotent(reason = "the tests want it again", name = "unkeyed.contended_once")]
async fn contended_once<S: TestStore>(tx: &mut Transaction<'_, S>, Unique(msg): Unique) -> sqlx::Result<usize> {
    msg.run::<S>(tx).await
}

impl Shop {
    #[naturally_idempotent(reason = "the tests want it again", name = "unkeyed.contended_method")]
    async fn contended<S: TestStore>(
        self: Arc<Self>,
        tx: &mut Transaction<'_, S>,
        msg: &Contended,
        (more, _): (usize, String),
    ) -> sqlx::Result<usize> {
        Ok(msg.run::<S>(tx).await? + more)
    }
}

/// [B25] Run again whole, with the message and the receiver as they came, if they can be had again.
#[allow(dead_code, reason = "SQLite has no such failure, and is all there is without the servers")]
async fn contention_runs_it_again<S: TestStore>(db: &Db<S>) {
    let (engine, sql): (Engine<S>, _) = (db.engine(1).await, S::CONTENTION.unwrap());
    let contention = || Contended { runs: Arc::default(), sql };
    assert_eq!(contended(&engine, contention()).await.unwrap(), Outcome::Applied(2));
    let shop = Arc::new(Shop { discount: 0 });
    let handled = shop.contended(&engine, &contention(), (40, String::new())).await;
    assert_eq!(handled.unwrap(), Outcome::Applied(42));
    assert_eq!((db.effects("run 1").await, db.effects("run 2").await), (0, 2));

    let msg = contention();
    let handled = contended_once(&engine, Unique(msg.clone())).await;
    assert!(matches!(handled, Err(Failure::Handler(_))));
    assert_eq!(msg.runs.load(Ordering::SeqCst), 1);
    assert_eq!((db.effects("run 1").await, db.keys().await), (0, 0));
}

#[cfg(feature = "databases")]
mod servers {
    use super::{Db, contention_runs_it_again};

    #[tokio::test]
    async fn contention_runs_it_again_on_postgres() {
        if !idem_tests::without_server("postgres") {
            Db::<sqlx::Postgres>::test(async |db| contention_runs_it_again(&db).await).await;
        }
    }

    #[tokio::test]
    async fn contention_runs_it_again_on_mysql() {
        if !idem_tests::without_server("mysql") {
            Db::<sqlx::MySql>::test(async |db| contention_runs_it_again(&db).await).await;
        }
    }
}
