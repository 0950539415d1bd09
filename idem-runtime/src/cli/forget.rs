//! `forget`: a key goes before its time, and somebody answers for it.

use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

use super::author::Author;
use super::opt;
use super::output::{Output, Paint, Report, instant};
use super::stop::{Exit, Stop};
use crate::engine::Engine;
use crate::key::Key;
use crate::purge;
use crate::store::Store;

#[derive(Debug, Serialize)]
pub(super) struct Forgot {
    key: String,
    handler: String,
    /// Whether the key was there, and is gone.
    forgotten: bool,
    /// When the event had been claimed.
    claimed_at: Option<String>,
    author: String,
    author_from: &'static str,
    reason: String,
    #[serde(skip)]
    remark: &'static str,
}

pub(super) async fn run<S: Store>(
    engine: &Engine<S>,
    options: opt::Forget,
    key: &Key,
    output: &Output,
) -> Result<Forgot, Stop> {
    let author = Author::of(options.author)?;
    let found = purge::find_key(engine, &options.handler, key).await?;
    let claimed_at = found.map(|found| instant(found.claimed_at));
    let mut forgotten = false;
    if let Some(at) = &claimed_at {
        if !options.yes {
            confirm(&options.handler, key.as_str(), at, output)?;
        }
        forgotten = purge::forget(engine, &options.handler, key, &author.name, &options.reason).await?;
    }
    Ok(Forgot {
        key: key.to_string(),
        handler: options.handler,
        forgotten,
        claimed_at,
        author_from: author.source,
        remark: author.remark(),
        author: author.name,
        reason: options.reason,
    })
}

/// Asks the human who is there; without one, somebody must have decided before.
fn confirm(handler: &str, key: &str, claimed_at: &str, output: &Output) -> Result<(), Stop> {
    if output.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Stop::refused(
            "nobody is there to be asked, and the event could be applied a second time; the key is kept; say --yes if \
             that is meant",
        ));
    }
    let unread = |error: io::Error| Stop::refused(format!("the answer cannot be read: {error}; the key is kept"));
    write!(
        io::stderr(),
        "`{handler}` applied the event {key} at {claimed_at}.\nIts next delivery will be applied AGAIN, on top of that. \
         Forget the key? [y/N] "
    )
    .map_err(unread)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(unread)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Stop::refused("not confirmed; the key is kept"))
}

impl Report for Forgot {
    const COMMAND: &'static str = "forget";

    fn text(&self, paint: Paint) -> String {
        let Self { key, handler, author, reason, .. } = self;
        if !self.forgotten {
            let none = paint.doubtful("not found");
            return format!("{none}: `{handler}` has no key {key}; nothing was deleted");
        }
        format!(
            "forgotten: key {key} of `{handler}`, by {author}{}: {reason}\nthe next delivery of the event is applied again; \
             the effect of the first one stays",
            self.remark
        )
    }

    fn exit(&self) -> Exit {
        if self.forgotten { Exit::Fine } else { Exit::No }
    }
}
