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
use crate::engine::Engine;
use crate::purge::{Exposed, Pass, Purged, Purger, Stopped};
use crate::store::Store;

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
    /// Where this program's retention is shorter than the one that nodes said before.
    shortened: Option<Shortened>,
}

/// What a shorter retention gives away, a day after a node last said the longer one.
#[derive(Debug, Serialize)]
struct Shortened {
    was_secs: u64,
    is_secs: u64,
    exposed_keys: u64,
    goes_in_secs: u64,
}

impl Shortened {
    fn of(exposed: Exposed) -> Self {
        let Exposed { was, is, keys, goes_in, .. } = exposed;
        let (was_secs, is_secs, goes_in_secs) = (was.as_secs(), is.as_secs(), goes_in.as_secs());
        Self { was_secs, is_secs, exposed_keys: keys, goes_in_secs }
    }
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
            return output.print(&Purge::of(counted, true));
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
            shortened: purged.exposed.map(Shortened::of),
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
                let (was, is) = (length::exact(shortened.was_secs), length::exact(shortened.is_secs));
                let exposed = length::number(shortened.exposed_keys);
                match shortened.goes_in_secs {
                    0 => format!("retention SHORTENED from {was} to {is}: {exposed} of them for that"),
                    secs => {
                        let goes_in = length::about(Duration::from_secs(secs));
                        format!("retention SHORTENED from {was} to {is}: {exposed} more in {goes_in}")
                    }
                }
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
