//! Documentation that is generated from the registry: what each handler does with an event that is delivered again, and
//! how long it remembers.

mod assert;
mod check;
mod committed;
mod drift;
mod entry;
mod facts;
mod figures;
mod html;
pub(crate) mod length;
mod markdown;
mod picture;

pub use assert::assert_catalog;
pub use drift::{Change, Drift, Note, Unreadable};
pub use figures::Figures;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Error;
use crate::handler::HandlerMeta;
use crate::registry::Registry;
use entry::Entry;
use figures::Measured;

/// The version of the JSON form and of the committed file; goes up when a reader of the old one would be misled.
const VERSION: u32 = 1;

/// The documentation of a program's handlers, as Markdown, JSON or an HTML page.
///
/// The same handlers give the same text: sorted by name, without dates, line numbers or paths of a machine. So it can be
/// committed, and [`assert_catalog!`](crate::assert_catalog) keeps it up to date.
///
/// ```standalone_crate
/// # mod handlers {
/// # use idem_runtime::idempotent;
/// # use sqlx::{Sqlite, Transaction};
/// # pub struct Paid { pub order_id: String }
/// # #[idempotent(key(msg.order_id), retention = "7d")]
/// # async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> { Ok(()) }
/// # }
/// let catalog = idem_runtime::Catalog::load()?;
/// assert!(catalog.markdown().contains("- retention: 7d"));
/// assert!(catalog.check(&catalog.markdown()).is_ok());
/// # Ok::<(), idem_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Catalog {
    entries: BTreeMap<&'static str, Entry>,
    figures: BTreeMap<String, Figures>,
}

/// The JSON form. Its fields are a contract: see `docs/catalog.md`.
#[derive(Serialize)]
struct Json<'a> {
    version: u32,
    handlers: Vec<&'a Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<Measured<'a>>,
}

impl Catalog {
    /// The catalog of the handlers that are linked into the program.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registry`](crate::ErrorKind::Registry), as from [`Registry::load`].
    pub fn load() -> Result<Self, Error> {
        Ok(Self::of(&Registry::load()?))
    }

    /// The catalog of a registry.
    #[must_use]
    pub fn of(registry: &Registry) -> Self {
        Self::of_handlers(registry.handlers())
    }

    /// The catalog of some handlers, for instance of those that one of several consumers runs. Of two with one name, the
    /// last one is in it.
    #[must_use]
    pub fn of_handlers(handlers: impl IntoIterator<Item = &'static HandlerMeta>) -> Self {
        let entries = handlers.into_iter().map(|meta| (meta.name, Entry::of(meta))).collect();
        Self { entries, figures: BTreeMap::new() }
    }

    /// Adds what a database says of the handlers. It is shown as a part of its own, and is no part of the committed form.
    /// Of two figures for one handler the last ones count.
    #[must_use]
    pub fn with_figures(mut self, figures: Vec<Figures>) -> Self {
        self.figures.extend(figures.into_iter().map(|figures| (figures.handler.clone(), figures)));
        self
    }

    /// Whether there is no handler in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many handlers are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// As Markdown: the form to commit.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = markdown::committed(self, &[]);
        text.push_str(&markdown::figures(&self.measured()));
        text
    }

    /// As JSON, with a `version` that says how to read it. The fields stand in `docs/catalog.md`.
    #[must_use]
    pub fn json(&self) -> String {
        let json = Json { version: VERSION, handlers: self.entries.values().collect(), figures: self.measured() };
        // Text, numbers and lists always serialize.
        let mut text = serde_json::to_string_pretty(&json).unwrap_or_default();
        text.push('\n');
        text
    }

    /// As one HTML page that needs nothing else: no network, no script, no font.
    #[must_use]
    pub fn html(&self) -> String {
        html::page(self)
    }

    fn measured(&self) -> Vec<Measured<'_>> {
        self.figures.values().map(|figures| Measured::of(figures, self.entries.get(figures.handler.as_str()))).collect()
    }
}
