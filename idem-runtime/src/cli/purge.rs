//! `purge`: one pass, or what it would delete.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;

use super::hold::Held;
use super::opt;
use super::output::{Output, Paint, Report, plain, table};
use super::stop::{Exit, Stop};
use crate::catalog::length;
use crate::engine::{CLOCK_TOLERANCE, Engine, seconds};
use crate::purge::{Pass, Purged, Purger, Stopped};
use crate::store::{Store, schema};

#[derive(Debug, Serialize)]
struct Purge {
    dry_run: bool,
    /// How many keys went, or would go.
    keys: u64,
    handlers: Vec<Row>,
    /// What an earlier end of the pass was due to.
    stopped: Option<Halt>,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Row {
    handler: String,
    keys: u64,
    older_than_secs: u64,
    /// Recorded for the application, and not in this program.
    orphaned: bool,
    /// Only in a dry run, where this program's retention is shorter than the recorded one.
    shortened: Option<Shortened>,
}

/// What a shorter retention gives away as soon as a node with it has started.
#[derive(Debug, Serialize)]
struct Shortened {
    was_secs: i64,
    is_secs: i64,
    exposed_keys: u64,
}

#[derive(Debug, Serialize)]
struct Halt {
    kind: &'static str,
    hold: Option<Held>,
}

#[derive(Debug, Serialize)]
struct Failure {
    handler: String,
    text: String,
}

pub(super) async fn run<S: Store>(engine: &Engine<S>, options: &opt::Purge, output: &Output) -> Result<Exit, Stop> {
    let mut purger = Purger::new(engine);
    if let Some(handler) = &options.handler {
        purger = purger.only(handler);
    }
    let before = if options.dry_run || options.handler.is_some() || Bar::is_seen(output) {
        Some(purger.dry_run().await?)
    } else {
        None
    };
    if let (Some(handler), Some(before)) = (&options.handler, &before)
        && before.handlers.is_empty()
    {
        return Err(Stop::usage(format!(
            "no handler `{handler}` that keeps keys is in this program or recorded for `{}`; nothing was deleted",
            engine.application()
        )));
    }
    let pass = match before {
        Some(counted) if options.dry_run => {
            let mut report = Purge::of(counted, true);
            report.expose(engine).await?;
            return output.print(&report);
        }
        counted => {
            let bar = Bar::new(output, counted.map(|pass| pass.purged()));
            let watched = bar.clone();
            let pass = purger.after_batch(move |handler, keys| watched.moved(handler, keys)).pass().await;
            bar.end();
            pass.map_err(|error| {
                Stop::then(&error, "the batches before that are gone, and were old enough; run it again for the others")
            })?
        }
    };
    output.print(&Purge::of(pass, false))
}

impl Purge {
    fn of(pass: Pass, dry_run: bool) -> Self {
        let row = |purged: &Purged| Row {
            handler: purged.handler.clone(),
            keys: purged.purged,
            older_than_secs: purged.older_than.as_secs(),
            orphaned: purged.is_orphan,
            shortened: None,
        };
        let failure = |(handler, error)| Failure { handler, text: Stop::from(error).text };
        Self {
            dry_run,
            keys: pass.purged(),
            handlers: pass.handlers.iter().map(row).collect(),
            stopped: pass.stopped.map(Halt::of),
            failures: pass.failures.into_iter().map(failure).collect(),
        }
    }

    /// Counts what shorter retentions would give away.
    async fn expose<S: Store>(&mut self, engine: &Engine<S>) -> Result<(), Stop> {
        let mut conn = super::connection(engine.pool()).await?;
        let recorded = S::recorded(&mut conn).await.map_err(schema::connection_error::<S>)?;
        for row in &mut self.handlers {
            let is_secs = engine.registry().get(&row.handler).and_then(|meta| meta.retention).map(seconds);
            let is_ours = |recorded: &&crate::store::RecordedRow| {
                recorded.application == engine.application() && recorded.handler == row.handler
            };
            let was_secs = recorded.iter().find(is_ours).and_then(|recorded| recorded.retention_secs);
            let (Some(is_secs), Some(was_secs)) = (is_secs, was_secs) else {
                continue;
            };
            if is_secs < was_secs {
                let tolerance = i64::try_from(CLOCK_TOLERANCE.as_secs()).unwrap_or(0);
                let older = S::count_older(&mut conn, &row.handler, is_secs.saturating_add(tolerance)).await;
                let older = u64::try_from(older.map_err(schema::connection_error::<S>)?).unwrap_or(0);
                row.shortened = Some(Shortened { was_secs, is_secs, exposed_keys: older.saturating_sub(row.keys) });
            }
        }
        Ok(())
    }
}

impl Halt {
    fn of(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Held(hold) => Self { kind: "held", hold: Some(Held::from(&hold)) },
            Stopped::Elsewhere => Self { kind: "elsewhere", hold: None },
            Stopped::Told => Self { kind: "told", hold: None },
        }
    }

    fn text(&self) -> String {
        match (self.kind, &self.hold) {
            (_, Some(hold)) => format!(
                "hold {} is in force for another {}, by {}: {}; nothing is lost: wait, or `release {}`",
                hold.id,
                hold.left(),
                plain(&hold.author),
                plain(&hold.reason),
                hold.id
            ),
            ("elsewhere", _) => {
                "another node is purging, or one died within the last minute; nothing is lost: wait, and run it again"
                    .to_owned()
            }
            _ => "it was told to stop; nothing is lost: run it again".to_owned(),
        }
    }
}

impl Row {
    fn cells(&self) -> [String; 4] {
        let remark = match (&self.shortened, self.orphaned) {
            (Some(shortened), _) => {
                let length = |secs: i64| length::exact(u64::try_from(secs).unwrap_or(0));
                let (was, is) = (length(shortened.was_secs), length(shortened.is_secs));
                let exposed = length::number(shortened.exposed_keys);
                format!("retention SHORTENED from {was} to {is}: {exposed} more as soon as a node with it has started")
            }
            (None, true) => "orphaned: recorded, and not in this program".to_owned(),
            (None, false) => String::new(),
        };
        [self.handler.clone(), length::number(self.keys), length::exact(self.older_than_secs), remark]
    }
}

impl Report for Purge {
    const COMMAND: &'static str = "purge";

    fn text(&self, paint: Paint) -> String {
        let mut lines = vec![table(["HANDLER", "KEYS", "OLDER THAN", ""], self.handlers.iter().map(Row::cells))];
        let keys = length::number(self.keys);
        lines.push(if self.dry_run {
            format!("{keys} keys would go; nothing was deleted")
        } else {
            format!("{keys} keys went")
        });
        if let Some(halt) = &self.stopped {
            lines.push(format!("{}: {}", paint.doubtful("the pass did not go to its end"), halt.text()));
        }
        for Failure { handler, text } in &self.failures {
            lines.push(format!("{}: handler `{handler}`: {text}", paint.bad("error")));
        }
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        match (&self.stopped, self.failures.as_slice()) {
            (_, [_, ..]) => Exit::Failed,
            (Some(_), []) => Exit::Refused,
            (None, []) => Exit::Fine,
        }
    }
}

/// How far the pass is: a bar on a terminal, a line now and then elsewhere, nothing beside JSON.
#[derive(Debug, Clone)]
enum Bar {
    Drawn(ProgressBar),
    Lines(std::sync::Arc<std::sync::atomic::AtomicU64>),
    Silent,
}

/// After how many keys there is another line.
const LINE_EVERY: u64 = 100_000;

impl Bar {
    fn is_seen(output: &Output) -> bool {
        !output.json && io::stderr().is_terminal()
    }

    fn new(output: &Output, total: Option<u64>) -> Self {
        match total {
            Some(total) if Self::is_seen(output) => {
                let template = "{bar:30} {human_pos}/{human_len} keys  {rate}/s  {eta} left  {msg}";
                let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
                let style = style.with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                    // Writing to the bar's text cannot fail.
                    let _ = write!(text, "{:.0}", state.per_sec());
                });
                let bar = ProgressBar::new(total).with_style(style);
                bar.enable_steady_tick(Duration::from_millis(250));
                Self::Drawn(bar)
            }
            _ if output.json => Self::Silent,
            _ => Self::Lines(std::sync::Arc::default()),
        }
    }

    fn moved(&self, handler: &str, keys: u64) {
        match self {
            Self::Drawn(bar) => {
                bar.set_message(handler.to_owned());
                bar.inc(keys);
            }
            Self::Lines(gone) => {
                let before = gone.fetch_add(keys, std::sync::atomic::Ordering::Relaxed);
                let now = before + keys;
                if before / LINE_EVERY != now / LINE_EVERY {
                    // Who closed standard error does not want to know.
                    let _ = writeln!(io::stderr(), "{} keys went, now of `{handler}`", length::number(now));
                }
            }
            Self::Silent => {}
        }
    }

    fn end(&self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}
