//! `hold`, `release` and `holds`: times in which nothing may be purged.

use std::time::Duration;

use serde::Serialize;

use super::author::Author;
use super::opt;
use super::output::{Paint, Report, plain, table};
use super::stop::{Exit, Stop};
use crate::catalog::length;
use crate::engine::Engine;
use crate::purge::{self, Hold};
use crate::store::Store;

/// A hold, as JSON has it.
#[derive(Debug, Serialize)]
pub(super) struct Held {
    pub(super) id: String,
    pub(super) reason: String,
    pub(super) author: String,
    pub(super) expires_in_secs: u64,
}

impl From<&Hold> for Held {
    fn from(hold: &Hold) -> Self {
        let (id, reason, author) = (hold.id.clone(), hold.reason.clone(), hold.author.clone());
        Self { id, reason, author, expires_in_secs: hold.expires_in.as_secs() }
    }
}

impl Held {
    pub(super) fn left(&self) -> String {
        length::about(Duration::from_secs(self.expires_in_secs))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Placed {
    hold: Held,
    author_from: &'static str,
    #[serde(skip)]
    remark: &'static str,
}

pub(super) async fn place<S: Store>(engine: &Engine<S>, options: opt::Hold) -> Result<Placed, Stop> {
    let author = Author::of(options.author)?;
    let placed = purge::place_hold(engine, &options.reason, &author.name, options.length.as_duration()).await?;
    Ok(Placed { hold: Held::from(&placed), author_from: author.source, remark: author.remark() })
}

impl Report for Placed {
    const COMMAND: &'static str = "hold";

    fn text(&self, _: Paint) -> String {
        let Held { id, author, .. } = &self.hold;
        format!(
            "hold {id} is in force for {}, by {author}{}\nno node purges meanwhile, and the tables grow; to end it: `release {id}`",
            self.hold.left(),
            self.remark
        )
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Released {
    id: String,
    released: bool,
    author: String,
    author_from: &'static str,
    #[serde(skip)]
    remark: &'static str,
}

pub(super) async fn release<S: Store>(engine: &Engine<S>, options: opt::Release) -> Result<Released, Stop> {
    let author = Author::of(options.author)?;
    let released = purge::release_hold(engine, &options.id, &author.name).await?;
    let (author_from, remark) = (author.source, author.remark());
    Ok(Released { id: options.id, released, author: author.name, author_from, remark })
}

impl Report for Released {
    const COMMAND: &'static str = "release";

    fn text(&self, paint: Paint) -> String {
        if self.released {
            format!("hold {} was released by {}{}; the purge goes on", self.id, self.author, self.remark)
        } else {
            let none = paint.doubtful("no such hold");
            format!(
                "{none} is in force: `{}` has expired, was released before, or never was; `holds` lists them",
                self.id
            )
        }
    }

    fn exit(&self) -> Exit {
        if self.released { Exit::Fine } else { Exit::No }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Holds {
    holds: Vec<Held>,
}

pub(super) async fn list<S: Store>(engine: &Engine<S>) -> Result<Holds, Stop> {
    Ok(Holds { holds: purge::holds(engine).await?.iter().map(Held::from).collect() })
}

impl Report for Holds {
    const COMMAND: &'static str = "holds";

    fn text(&self, _: Paint) -> String {
        if self.holds.is_empty() {
            return "no hold is in force".to_owned();
        }
        let row = |hold: &Held| [hold.id.clone(), hold.left(), plain(&hold.author), plain(&hold.reason)];
        table(["ID", "EXPIRES IN", "AUTHOR", "REASON"], self.holds.iter().map(row))
    }
}
