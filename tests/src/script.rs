//! A handler that does what its message says, and a broker that notes what it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idem_runtime::{Engine, ErrorKind, Failure, Outcome, Settle, idempotent};
use sqlx::Transaction;
use tokio::sync::Semaphore;

use crate::TestStore;

/// One thing that a handler does.
#[derive(Debug, Clone)]
pub enum Step {
    /// Writes an effect.
    Effect(&'static str),
    /// Runs SQL and returns its error, if it has one.
    Sql(String),
    /// Runs SQL and ignores its error.
    Ignored(String),
    /// Returns an error of its own.
    Fail,
    Panic,
    /// Writes a line to the standard output, for another process to wait for.
    Say(&'static str),
    /// Says that it has come here.
    Reach(Arc<Semaphore>),
    /// Waits until it may go on.
    Await(Arc<Semaphore>),
}

/// An event, and what its handler does; on the first run something else, perhaps.
#[derive(Debug, Default)]
pub struct Message {
    pub id: String,
    pub first_run: Option<Vec<Step>>,
    pub steps: Vec<Step>,
    pub runs: AtomicUsize,
}

impl Message {
    pub fn new(id: impl Into<String>, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { id: id.into(), steps: steps.into_iter().collect(), ..Self::default() }
    }

    /// How often the handler's body has run.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

/// Does what the message says. Generic over the database: one handler for all suites.
#[idempotent(key(msg.id), retention = "7d")]
pub async fn perform<S: TestStore>(tx: &mut Transaction<'_, S>, msg: &Message) -> anyhow::Result<usize> {
    let run = msg.runs.fetch_add(1, Ordering::SeqCst) + 1;
    let steps = match &msg.first_run {
        Some(steps) if run == 1 => steps,
        _ => &msg.steps,
    };
    for step in steps {
        match step {
            Step::Effect(note) => drop(S::run(tx, &format!("INSERT INTO effect (note) VALUES ('{note}')")).await?),
            Step::Sql(sql) => drop(S::run(tx, sql).await?),
            Step::Ignored(sql) => drop(S::run(tx, sql).await),
            Step::Fail => anyhow::bail!("the handler fails, as told"),
            Step::Panic => panic!("the handler panics, as told"),
            Step::Say(line) => say(line),
            Step::Reach(point) => point.add_permits(1),
            Step::Await(point) => point.acquire().await?.forget(),
        }
    }
    Ok(run)
}

/// Writes a line to the standard output, past what captures the output of tests.
pub fn say(line: &str) {
    use std::io::Write;
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
}

/// What the broker saw of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivered {
    Applied,
    Duplicate,
    /// The handler's own error.
    Failed,
    Refused(ErrorKind),
}

impl Delivered {
    /// Whether the delivery was acknowledged.
    pub fn is_acked(&self) -> bool {
        matches!(self, Self::Applied | Self::Duplicate)
    }
}

/// Delivers a message, and checks that what may not be acknowledged is not.
pub async fn deliver<S: TestStore>(engine: &Engine<S>, msg: &Message) -> Delivered {
    match perform(engine, msg).await {
        Ok(Outcome::Applied(_)) => Delivered::Applied,
        Ok(_) => Delivered::Duplicate,
        Err(failure) => {
            assert_ne!(failure.settle(), Settle::Ack, "{failure}");
            match failure {
                Failure::Engine(error) => Delivered::Refused(error.kind()),
                _ => Delivered::Failed,
            }
        }
    }
}
