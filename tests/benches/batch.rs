//! Batches of 100 beside single deliveries, through the engine and by hand, on PostgreSQL.
//!
//! `cargo bench -p idem-tests --features databases --bench batch [-- TURNS]` (PostgreSQL named by `IDEM_TEST_PG_URL`, with
//! `fsync` on). All ways take turns on one connection each, so that the machine's mood hits them alike. The second table has
//! a slower disk: `commit_delay` makes every commit wait.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a benchmark")]

#[cfg(feature = "databases")]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let turns = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(15);
    on_postgres::run(turns).await;
}

#[cfg(not(feature = "databases"))]
fn main() {
    println!("batch: needs `--features databases`");
}

#[cfg(feature = "databases")]
mod on_postgres {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use idem_runtime::{Engine, idempotent};
    use idem_tests::Db;
    use sqlx::{Connection, PgConnection, Pool, Postgres, Transaction};

    const BATCH: usize = 100;
    /// As many deliveries take a turn.
    const TURN: usize = 500;

    const WAYS: [&str; 6] =
        ["by hand, single", "by hand, batch", "by hand, slice", "engine, single", "engine, batch", "engine, slice"];

    struct Paid {
        id: String,
        account: i32,
    }

    #[idempotent(key(msg.id), retention = "7d", name = "bench.each")]
    async fn each(tx: &mut Transaction<'_, Postgres>, msg: &Paid) -> sqlx::Result<()> {
        credit(tx, msg).await
    }

    #[idempotent(key(msg.id), retention = "7d", batch = credit_all, name = "bench.all")]
    async fn all(tx: &mut Transaction<'_, Postgres>, msg: &Paid) -> sqlx::Result<()> {
        credit_all(tx, &[msg]).await
    }

    async fn credit(conn: &mut PgConnection, msg: &Paid) -> sqlx::Result<()> {
        let update = "UPDATE account SET cents = cents + 1 WHERE id = $1";
        sqlx::query(update).bind(msg.account).execute(conn).await.map(drop)
    }

    async fn credit_all(conn: &mut PgConnection, msgs: &[&Paid]) -> sqlx::Result<()> {
        let accounts: Vec<_> = msgs.iter().map(|msg| msg.account).collect();
        let update = "UPDATE account SET cents = cents + paid.times \
                      FROM (SELECT id, count(*) AS times FROM unnest($1::int[]) AS id GROUP BY id) AS paid \
                      WHERE account.id = paid.id";
        sqlx::query(update).bind(accounts).execute(conn).await.map(drop)
    }

    /// Claim, effect, commit, as people write it. Proves nothing.
    async fn by_hand(pool: &Pool<Postgres>, msgs: &[Paid], slice: bool) {
        let mut tx = pool.begin().await.unwrap();
        let insert = "INSERT INTO idem_key (handler, event_key, claim) \
                      SELECT 'bench.hand', key, 1 FROM unnest($1::bytea[]) AS key ON CONFLICT DO NOTHING";
        let keys: Vec<_> = msgs.iter().map(|msg| msg.id.as_bytes()).collect();
        let new = sqlx::query(insert).bind(keys).execute(&mut *tx).await.unwrap().rows_affected();
        assert_eq!(new, msgs.len() as u64);
        if slice {
            credit_all(&mut tx, &msgs.iter().collect::<Vec<_>>()).await.unwrap();
        } else {
            for msg in msgs {
                credit(&mut tx, msg).await.unwrap();
            }
        }
        tx.commit().await.unwrap();
    }

    async fn go(way: usize, engine: &Engine<Postgres>, pool: &Pool<Postgres>, msgs: &[Paid]) {
        match way {
            0 => {
                for msg in msgs {
                    by_hand(pool, std::slice::from_ref(msg), false).await;
                }
            }
            3 => {
                for msg in msgs {
                    each(engine, msg).await.unwrap();
                }
            }
            _ => {
                for batch in msgs.chunks(BATCH) {
                    let borrowed: Vec<_> = batch.iter().collect();
                    match way {
                        1 => by_hand(pool, batch, false).await,
                        2 => by_hand(pool, batch, true).await,
                        4 => assert!(engine.handle_batch::<each>(&borrowed, &()).await.iter().all(Result::is_ok)),
                        _ => assert!(engine.handle_batch::<all>(&borrowed, &()).await.iter().all(Result::is_ok)),
                    }
                }
            }
        }
    }

    pub(crate) async fn run(turns: usize) {
        for (delay, disk) in [("0", "the disk as it is"), ("1800", "a disk that takes 1.8 ms longer")] {
            Db::<Postgres>::test(async |db| {
                db.run("INSERT INTO account SELECT id, 0 FROM generate_series(3, 1000) AS id").await;
                let setup: &'static str = if delay == "0" {
                    "SET lock_timeout = '5s'"
                } else {
                    "SET lock_timeout = '5s'; SET commit_siblings = 0; SET commit_delay = 1800"
                };
                let pool = db.pool_with(1, setup).await;
                let engine = Engine::start(db.pool_with(1, setup).await).await.unwrap();
                let next = AtomicU64::new(0);
                let mut times = vec![Vec::new(); WAYS.len()];
                for turn in 0..=turns {
                    for step in 0..WAYS.len() {
                        // Nobody is always the first after the other.
                        let way = (turn + step) % WAYS.len();
                        let msgs: Vec<_> = (0..TURN).map(|_| paid(&next)).collect();
                        let begun = Instant::now();
                        go(way, &engine, &pool, &msgs).await;
                        // The first turn prepares statements.
                        if turn > 0 {
                            times[way].push(begun.elapsed());
                        }
                    }
                }
                print(disk, commit_millis(&pool).await, &times);
                engine.pool().close().await;
                pool.close().await;
            })
            .await;
        }
    }

    fn paid(next: &AtomicU64) -> Paid {
        let number = next.fetch_add(1, Ordering::Relaxed);
        Paid { id: format!("evt_{number:016}"), account: (number * 7 % 1_000) as i32 + 1 }
    }

    /// What a commit of one row takes.
    async fn commit_millis(pool: &Pool<Postgres>) -> f64 {
        let mut conn = pool.acquire().await.unwrap();
        let mut took = Vec::new();
        for _ in 0..50 {
            let mut tx = conn.begin().await.unwrap();
            sqlx::query("UPDATE account SET cents = cents + 1 WHERE id = 1").execute(&mut *tx).await.unwrap();
            let begun = Instant::now();
            tx.commit().await.unwrap();
            took.push(begun.elapsed());
        }
        median(&took).as_secs_f64() * 1_000.0
    }

    fn median(times: &[Duration]) -> Duration {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[times.len() / 2]
    }

    fn print(disk: &str, commit: f64, times: &[Vec<Duration>]) {
        println!("\nPostgreSQL, one connection, {disk}: a commit takes {commit:.2} ms");
        println!("{:<18} {:>12} {:>26} {:>26}", "", "deliveries/s", "to the engine's single", "to the same by hand");
        for (way, name) in WAYS.iter().enumerate() {
            let ratio = |to: usize| {
                let mut ratios: Vec<_> =
                    times[to].iter().zip(&times[way]).map(|(to, own)| to.as_secs_f64() / own.as_secs_f64()).collect();
                ratios.sort_unstable_by(f64::total_cmp);
                let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
                format!("{:.2} ({low:.2} to {high:.2})", ratios[ratios.len() / 2])
            };
            let hand = if way < 3 { "-".to_owned() } else { ratio(way - 3) };
            let rate = TURN as f64 / median(&times[way]).as_secs_f64();
            println!("{name:<18} {rate:>12.0} {:>26} {hand:>26}", ratio(3));
        }
    }
}
