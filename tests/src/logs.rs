//! What is logged on this thread.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

thread_local! {
    static CAPTURED: RefCell<Option<Logs>> = const { RefCell::new(None) };
}

/// One line per span and event: level, target, fields.
#[derive(Debug, Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<(Level, String)>>>);

/// Captures until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Capture(());

impl Drop for Capture {
    fn drop(&mut self) {
        CAPTURED.set(None);
    }
}

impl Logs {
    /// Notes everything that this thread logs. For tests on the current-thread runtime.
    ///
    /// The subscriber is everybody's, since tracing remembers of each event whether the thread that first came by had one.
    pub fn capture() -> (Self, Capture) {
        static SUBSCRIBE: Once = Once::new();
        SUBSCRIBE.call_once(|| {
            tracing::subscriber::set_global_default(Registry::default().with(ToThread)).unwrap();
        });
        let logs = Self::default();
        CAPTURED.set(Some(logs.clone()));
        (logs, Capture(()))
    }

    /// What was logged at this level or a more urgent one.
    #[must_use]
    pub fn up_to(&self, level: Level) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|(at, _)| *at <= level).map(|(_, line)| line.clone()).collect()
    }
}

/// Hands everything to the capture of the thread that logs it.
struct ToThread;

impl ToThread {
    fn note(metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        CAPTURED.with_borrow(|logs| {
            if let Some(logs) = logs {
                let mut line = Line(format!("{} {}", metadata.target(), metadata.name()));
                record(&mut line);
                logs.0.lock().unwrap().push((*metadata.level(), line.0));
            }
        });
    }
}

impl<S: Subscriber> Layer<S> for ToThread {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        Self::note(attributes.metadata(), |line| attributes.record(line));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        Self::note(event.metadata(), |line| event.record(line));
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
