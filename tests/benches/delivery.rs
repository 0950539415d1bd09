//! One delivery through the engine, beside the same transaction written by hand with sqlx.
//!
//! `cargo bench -p idem-tests --features databases` (PostgreSQL named by `IDEM_TEST_PG_URL`; without the feature SQLite
//! alone). Each figure of the engine is taken in turns with the hand-written one, and the ratios of those pairs are
//! printed at the end: the machine's mood hits both. `IDEM_BENCH_KEYS=10000000` fills PostgreSQL's table first.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

mod by_hand;
mod pairs;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use idem_runtime::{Engine, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, Transaction};

use by_hand::ByHand;
use pairs::{Pairs, Run};

/// What the deliveries of a benchmark are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Fresh,
    Duplicate,
}

/// Credits one of a thousand accounts, so that deliveries do not wait for each other.
#[idempotent(key(id), retention = "7d", name = "bench.credit")]
async fn credit<S: ByHand>(tx: &mut Transaction<'_, S>, id: &str, account: &i32) -> sqlx::Result<()> {
    S::effect(tx, *account).await
}

fn benches(criterion: &mut Criterion) {
    let mut pairs = Pairs::default();
    // The large table is a question to a server.
    if std::env::var_os("IDEM_BENCH_KEYS").is_none() {
        store::<Sqlite>(criterion, &mut pairs, &[1]);
    }
    #[cfg(feature = "databases")]
    if std::env::var_os("IDEM_TEST_PG_URL").is_some() {
        store::<sqlx::Postgres>(criterion, &mut pairs, &[1, 16]);
    }
    pairs.print();
}

fn store<S: ByHand>(criterion: &mut Criterion, pairs: &mut Pairs, connections: &[u32]) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(Db::<S>::test(async |db| {
        db.run(S::ACCOUNTS).await;
        if let Ok(keys) = std::env::var("IDEM_BENCH_KEYS") {
            db.run(&S::fill(&keys)).await;
        }
        for &connections in connections {
            // Each way on a pool of its own, as an application has it.
            let pool = db.pool(connections).await;
            let engine = Engine::start(db.pool(connections).await).await.unwrap();
            // As `docs/performance.md` advises.
            let tuned = Engine::start(db.pool_with(connections, S::BOUNDED).await).await.unwrap();
            for (case, name) in [(Case::Fresh, "fresh"), (Case::Duplicate, "duplicate")] {
                let runs = Run::new([&engine, &tuned], &pool, case, connections);
                // criterion times closures of its own, so the runs are driven from a blocking place.
                tokio::task::block_in_place(|| group(criterion, pairs, &runs, name, connections));
            }
            engine.pool().close().await;
            tuned.pool().close().await;
            pool.close().await;
        }
    }));
}

fn group<S: ByHand>(criterion: &mut Criterion, pairs: &mut Pairs, runs: &Run<'_, S>, case: &str, connections: u32) {
    let mut group = criterion.benchmark_group(format!("{}/{case}", S::NAME));
    group.throughput(Throughput::Elements(1)).measurement_time(Duration::from_secs(6)).sample_size(20);
    let label = format!("{}/{case}/{connections}", S::NAME);
    group.bench_function(BenchmarkId::new("engine", connections), |bencher| {
        bencher.iter_custom(|deliveries| runs.in_turns(&runtime_handle(), deliveries, pairs, &label));
    });
    group.bench_function(BenchmarkId::new("engine, tuned", connections), |bencher| {
        bencher.iter_custom(|deliveries| runtime_handle().block_on(runs.tuned(deliveries)));
    });
    group.bench_function(BenchmarkId::new("by hand", connections), |bencher| {
        bencher.iter_custom(|deliveries| runtime_handle().block_on(runs.by_hand(deliveries)));
    });
    group.bench_function(BenchmarkId::new("by hand, proven", connections), |bencher| {
        bencher.iter_custom(|deliveries| runtime_handle().block_on(runs.by_hand_proven(deliveries)));
    });
    group.finish();
}

fn runtime_handle() -> tokio::runtime::Handle {
    tokio::runtime::Handle::current()
}

criterion_group!(all, benches);

fn main() {
    all();
    Criterion::default().configure_from_args().final_summary();
}
