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
    tuned: &'a Engine<S>,
    pool: &'a Pool<S>,
    case: Case,
    tasks: u32,
    next: Arc<AtomicU64>,
}

#[derive(Clone, Copy)]
enum Way {
    Engine,
    Tuned,
    ByHand { proven: bool },
}

impl<'a, S: ByHand> Run<'a, S> {
    pub(crate) fn new([engine, tuned]: [&'a Engine<S>; 2], pool: &'a Pool<S>, case: Case, tasks: u32) -> Self {
        // Events of this run's own: other runs deliver to the same table.
        let next = Arc::new(AtomicU64::new(u64::from(tasks) << 40));
        Self { engine, tuned, pool, case, tasks, next }
    }

    /// The engine's time; the pair of it and the hand-written one is noted.
    pub(crate) fn in_turns(&self, runtime: &Handle, deliveries: u64, pairs: &mut Pairs, label: &str) -> Duration {
        // Short turns, so that a checkpoint or a neighbour hits both.
        let ways = [Way::Engine, Way::Tuned, Way::ByHand { proven: false }, Way::ByHand { proven: true }];
        let mut times = [Duration::ZERO; 4];
        let mut left = deliveries;
        for turn in 0.. {
            if left == 0 {
                break;
            }
            let length = left.min(100 * u64::from(self.tasks));
            for step in 0..ways.len() {
                // Nobody is always the first after the other.
                let at = (turn + step) % ways.len();
                times[at] += runtime.block_on(self.go(ways[at], length));
            }
            left -= length;
        }
        if deliveries >= 100 {
            pairs.note(label, times);
        }
        times[0]
    }

    pub(crate) async fn tuned(&self, deliveries: u64) -> Duration {
        self.go(Way::Tuned, deliveries).await
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
            let engine = if matches!(way, Way::Tuned) { self.tuned } else { self.engine };
            let (engine, pool, left) = (engine.clone(), self.pool.clone(), Arc::clone(&left));
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
                        Way::Engine | Way::Tuned => credit(&engine, &id, &account).await.unwrap().is_applied(),
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

/// Ratios of the engine's throughput to others', by benchmark: plain and tuned, to hand-written and proven hand-written.
#[derive(Default)]
pub(crate) struct Pairs(BTreeMap<String, Vec<[f64; 4]>>);

impl Pairs {
    fn note(&mut self, label: &str, times: [Duration; 4]) {
        let [engine, tuned, by_hand, proven] = times.map(|time| time.as_secs_f64());
        let ratios = [by_hand / engine, proven / engine, by_hand / tuned, proven / tuned];
        self.0.entry(label.to_owned()).or_default().push(ratios);
    }

    /// The median of all pairs.
    pub(crate) fn print(&self) {
        println!("\nthroughput of the engine, as a part of the same transaction written by hand (median of pairs)");
        println!("{:<26} {:>6} {:>21} {:>21}", "", "", "engine", "engine, tuned");
        println!(
            "{:<26} {:>6} {:>10} {:>10} {:>10} {:>10}",
            "benchmark", "pairs", "to hand", "to proven", "to hand", "to proven"
        );
        for (label, ratios) in &self.0 {
            let median = |column: usize| {
                let mut values: Vec<f64> = ratios.iter().map(|ratios| ratios[column]).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            print!("{label:<26} {:>6}", ratios.len());
            for column in 0..4 {
                print!(" {:>10.3}", median(column));
            }
            println!();
        }
    }
}
