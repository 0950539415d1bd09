//! What is logged on this thread.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

/// One line per span and event: level, target, fields.
#[derive(Debug, Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<(Level, String)>>>);

impl Logs {
    /// Notes everything that this thread logs, until the guard is dropped. For tests on the current-thread runtime.
    #[must_use]
    pub fn capture() -> (Self, DefaultGuard) {
        let logs = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(logs.clone()));
        (logs, guard)
    }

    /// What was logged at this level or a more urgent one.
    #[must_use]
    pub fn up_to(&self, level: Level) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|(at, _)| *at <= level).map(|(_, line)| line.clone()).collect()
    }

    fn note(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        let mut line = Line(format!("{} {}", metadata.target(), metadata.name()));
        record(&mut line);
        self.0.lock().unwrap().push((*metadata.level(), line.0));
    }
}

impl<S: Subscriber> Layer<S> for Logs {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.note(attributes.metadata(), |line| attributes.record(line));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.note(event.metadata(), |line| event.record(line));
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
