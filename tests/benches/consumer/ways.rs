//! The ways, and their turns.

use std::time::{Duration, Instant};

use idem_runtime::{Adapter, Consumer, Engine, idempotent};
use idem_tests::Db;
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Postgres, Transaction};

use crate::brokers::{Kafka, Nats, Queue, Rabbit, Redis};

/// As many deliveries take a turn.
const TURN: usize = 1_000;

const WAYS: [&str; 3] = ["bare loop, by hand", "consumer, single", "consumer, batch"];

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Paid {
    id: String,
    account: i32,
}

#[idempotent(key(msg.id), retention = "7d", name = "bench.consumed")]
async fn credit(tx: &mut Transaction<'_, Postgres>, msg: &Paid) -> sqlx::Result<()> {
    effect(tx, msg).await
}

async fn effect(conn: &mut sqlx::PgConnection, msg: &Paid) -> sqlx::Result<()> {
    let update = "UPDATE account SET cents = cents + 1 WHERE id = $1";
    sqlx::query(update).bind(msg.account).execute(conn).await.map(drop)
}

/// Decode, claim, effect, commit, as people write it. Proves nothing.
pub(crate) async fn by_hand(pool: &Pool<Postgres>, body: &[u8]) {
    let msg: Paid = serde_json::from_slice(body).unwrap();
    let mut tx = pool.begin().await.unwrap();
    let insert = "INSERT INTO idem_key (handler, event_key, claim) VALUES ('bench.hand', $1, 1) ON CONFLICT DO NOTHING";
    if sqlx::query(insert).bind(msg.id.as_bytes()).execute(&mut *tx).await.unwrap().rows_affected() == 1 {
        effect(&mut tx, &msg).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// A broker with a queue of the benchmark's own.
#[allow(async_fn_in_trait, reason = "the benchmark awaits them where it is")]
pub(crate) trait Bench: Sized {
    type Adapter: Adapter;
    const NAME: &'static str;

    async fn create(pool: &Pool<Postgres>) -> Self;
    fn adapter(&self) -> Self::Adapter;
    async fn publish(&self, bodies: Vec<Vec<u8>>);
    /// Receives, hands over and acknowledges so many, as the client's own documentation shows it.
    async fn bare(&self, many: usize, pool: &Pool<Postgres>);
    async fn destroy(self) {}
}

/// Every broker, or the one of this name.
pub(crate) async fn run(turns: usize, only: Option<&str>) {
    let brokers = [Queue::NAME, Rabbit::NAME, Nats::NAME, Redis::NAME, Kafka::NAME];
    assert!(only.is_none_or(|only| brokers.contains(&only)), "the brokers are {}", brokers.join(", "));
    println!("PostgreSQL, one consumer; deliveries/s, and as a part of the bare loop: median (least to most)");
    all::<Queue>(turns, only).await;
    all::<Rabbit>(turns, only).await;
    all::<Nats>(turns, only).await;
    all::<Redis>(turns, only).await;
    all::<Kafka>(turns, only).await;
}

async fn all<B: Bench>(turns: usize, only: Option<&str>) {
    if only.is_some_and(|only| only != B::NAME) {
        return;
    }
    Db::<Postgres>::test(async |db| {
        db.run("INSERT INTO account SELECT id, 0 FROM generate_series(3, 1000) AS id").await;
        let pool = db.pool_with(2, "SET lock_timeout = '5s'").await;
        let engine = Engine::start(db.pool_with(2, "SET lock_timeout = '5s'").await).await.unwrap();
        let broker = B::create(&pool).await;
        let mut times = vec![Vec::new(); WAYS.len()];
        let mut sent = 0;
        for turn in 0..=turns {
            for step in 0..WAYS.len() {
                // Nobody is always the first after the other.
                let way = (turn + step) % WAYS.len();
                let bodies: Vec<_> = (0..TURN).map(|number| body(sent + number)).collect();
                broker.publish(bodies).await;
                sent += TURN;
                let took = match way {
                    0 => {
                        let begun = Instant::now();
                        broker.bare(TURN, &pool).await;
                        begun.elapsed()
                    }
                    way => consume(&broker, &engine, &db, if way == 1 { 1 } else { 100 }, sent).await,
                };
                // The first turn prepares statements.
                if turn > 0 {
                    times[way].push(took);
                }
            }
        }
        print::<B>(&times);
        broker.destroy().await;
        engine.pool().close().await;
        pool.close().await;
    })
    .await;
}

fn body(number: usize) -> Vec<u8> {
    let account = i32::try_from(number * 7 % 1_000).unwrap() + 1;
    serde_json::to_vec(&Paid { id: format!("evt_{number:012}"), account }).unwrap()
}

/// From the start of the consumer to the last effect; a group that forms is not counted, as the bare loop's is not.
async fn consume<B: Bench>(
    broker: &B,
    engine: &Engine<Postgres>,
    db: &Db<Postgres>,
    batch: usize,
    sent: usize,
) -> Duration {
    let consumer = Consumer::new(engine, broker.adapter()).handler::<credit>().concurrency(1).batch(batch);
    let before = db.number("SELECT sum(cents)::bigint FROM account").await;
    assert_eq!(before, i64::try_from(sent - TURN).unwrap());
    let consuming = consumer.start().await.unwrap();
    let mut begun = Instant::now();
    loop {
        let applied = db.number("SELECT sum(cents)::bigint FROM account").await;
        if applied == before {
            begun = Instant::now();
        }
        if applied == i64::try_from(sent).unwrap() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = begun.elapsed();
    consuming.until_settled().await;
    consuming.stop().await;
    took
}

fn print<B: Bench>(times: &[Vec<Duration>]) {
    for (way, name) in WAYS.iter().enumerate() {
        let mut rates: Vec<_> = times[way].iter().map(|took| TURN as f64 / took.as_secs_f64()).collect();
        let mut ratios: Vec<_> =
            times[0].iter().zip(&times[way]).map(|(bare, own)| bare.as_secs_f64() / own.as_secs_f64()).collect();
        rates.sort_unstable_by(f64::total_cmp);
        ratios.sort_unstable_by(f64::total_cmp);
        let (low, middle, high) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        println!("{:<10} {name:<20} {:>8.0} {middle:>8.2} ({low:.2} to {high:.2})", B::NAME, rates[rates.len() / 2]);
    }
}
