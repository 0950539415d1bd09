//! Runs of deliveries, and runs taken in turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use idem_runtime::Engine;
use sqlx::Pool;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::by_hand::ByHand;
use crate::{Case, credit};

/// Delivers through as many tasks as there are connections.
pub(crate) struct Run<'a, S: ByHand> {
    engine: &'a Engine<S>,
    pool: &'a Pool<S>,
    case: Case,
    tasks: u32,
    next: Arc<AtomicU64>,
}

#[derive(Clone, Copy)]
enum Way {
    Engine,
    ByHand { proven: bool },
}

impl<'a, S: ByHand> Run<'a, S> {
    pub(crate) fn new(engine: &'a Engine<S>, pool: &'a Pool<S>, case: Case, tasks: u32) -> Self {
        Self { engine, pool, case, tasks, next: Arc::default() }
    }

    /// The engine's time; the pair of it and the hand-written one is noted.
    pub(crate) fn in_turns(&self, runtime: &Handle, deliveries: u64, pairs: &mut Pairs, label: &str) -> Duration {
        // Short turns, so that a checkpoint or a neighbour hits both.
        let (mut engine, mut by_hand, mut proven) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut left = deliveries;
        while left > 0 {
            let turn = left.min(200 * u64::from(self.tasks));
            engine += runtime.block_on(self.go(Way::Engine, turn));
            by_hand += runtime.block_on(self.go(Way::ByHand { proven: false }, turn));
            proven += runtime.block_on(self.go(Way::ByHand { proven: true }, turn));
            left -= turn;
        }
        if deliveries >= 100 {
            pairs.note(label, engine, by_hand, proven);
        }
        engine
    }

    pub(crate) async fn by_hand(&self, deliveries: u64) -> Duration {
        self.go(Way::ByHand { proven: false }, deliveries).await
    }

    pub(crate) async fn by_hand_proven(&self, deliveries: u64) -> Duration {
        self.go(Way::ByHand { proven: true }, deliveries).await
    }

    async fn go(&self, way: Way, deliveries: u64) -> Duration {
        let start = self.next.fetch_add(deliveries, Ordering::Relaxed);
        let left = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        let fresh = self.case == Case::Fresh;
        if !fresh {
            // The one event that is delivered again and again.
            credit(self.engine, "again", &1).await.unwrap();
            S::deliver(self.pool, "again", 1, false).await.unwrap();
        }
        let began = Instant::now();
        for _ in 0..self.tasks {
            let (engine, pool, left) = (self.engine.clone(), self.pool.clone(), Arc::clone(&left));
            tasks.spawn(async move {
                loop {
                    let number = left.fetch_add(1, Ordering::Relaxed);
                    if number >= deliveries {
                        return;
                    }
                    let number = start + number;
                    let id = if fresh {
                        format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                    } else {
                        "again".into()
                    };
                    let account = i32::try_from(number % 1_000).unwrap() + 1;
                    let new = match way {
                        Way::Engine => credit(&engine, &id, &account).await.unwrap().is_applied(),
                        Way::ByHand { proven } => S::deliver(&pool, &id, account, proven).await.unwrap(),
                    };
                    assert_eq!(new, fresh);
                }
            });
        }
        tasks.join_all().await;
        began.elapsed()
    }
}

/// Times of engine, hand-written and proven hand-written runs, by benchmark.
#[derive(Default)]
pub(crate) struct Pairs(BTreeMap<String, Vec<[f64; 2]>>);

impl Pairs {
    fn note(&mut self, label: &str, engine: Duration, by_hand: Duration, proven: Duration) {
        let engine = engine.as_secs_f64();
        let ratios = [by_hand.as_secs_f64() / engine, proven.as_secs_f64() / engine];
        self.0.entry(label.to_owned()).or_default().push(ratios);
    }

    /// The engine's throughput as a part of the others', the median of all pairs.
    pub(crate) fn print(&self) {
        println!("\nthroughput of the engine, as a part of the same transaction written by hand (median of pairs)");
        println!("{:<28} {:>6} {:>12} {:>20}", "benchmark", "pairs", "by hand", "by hand, proven");
        for (label, ratios) in &self.0 {
            let median = |column: usize| {
                let mut values: Vec<f64> = ratios.iter().map(|ratios| ratios[column]).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            println!("{label:<28} {:>6} {:>12.3} {:>20.3}", ratios.len(), median(0), median(1));
        }
    }
}
