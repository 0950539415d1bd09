//! `catalog`: the documentation of the handlers, and whether the committed one is up to date.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::Target;
use super::opt::{self, Format};
use super::output::{Output, Paint, Report};
use super::stop::{Exit, Stop};
use crate::catalog::{Catalog, Drift, Figures};
use crate::purge::figures;
use crate::store::Store;

/// The catalog of the program, which needs a database for its figures alone.
pub(super) async fn run<S: Store>(target: Target<S>, options: &opt::Catalog, output: &Output) -> Result<Exit, Stop> {
    if !options.figures {
        return print(&Catalog::of(&target.registry()?), options, output);
    }
    if options.output.is_some() && matches!(options.format, None | Some(Format::Markdown)) {
        return Err(Stop::usage(
            "the Markdown that is committed has no figures; leave out --figures, or take another --format",
        ));
    }
    let engine = target.engine().await?;
    let figures = figures(&engine).await?.into_iter().map(Figures::from).collect();
    print(&Catalog::of(engine.registry()).with_figures(figures), options, output)
}

fn print(catalog: &Catalog, options: &opt::Catalog, output: &Output) -> Result<Exit, Stop> {
    if let Some(path) = &options.check {
        return output.print(&Checked::of(path, &catalog.drifts_of_file(path)));
    }
    let format = match options.format {
        // What `--json` prints of a catalog is its JSON form.
        None if output.json && options.output.is_none() => Format::Json,
        Some(Format::Markdown | Format::Html) if output.json && options.output.is_none() => {
            return Err(Stop::usage("--json prints JSON, and --format asks for another form; leave one of them out"));
        }
        given => given.unwrap_or(Format::Markdown),
    };
    let text = match format {
        Format::Markdown => catalog.markdown(),
        Format::Json => catalog.json(),
        Format::Html => catalog.html(),
    };
    match &options.output {
        None => output.text(&text).map(|()| Exit::Fine),
        Some(path) if format == Format::Markdown => match catalog.bless_file(path) {
            Ok(changed) => output.print(&Written::of(path, changed)),
            Err(drifts) => output.print(&Checked::of(path, &drifts)),
        },
        Some(path) => {
            let changed = fs::read(path).ok().as_deref() != Some(text.as_bytes());
            fs::write(path, text).map_err(|error| {
                Stop::failed(format!("`{}` cannot be written: {error}; no key is touched", path.display()))
            })?;
            output.print(&Written::of(path, changed))
        }
    }
}

#[derive(Debug, Serialize)]
struct Written {
    file: String,
    changed: bool,
}

impl Written {
    fn of(path: &Path, changed: bool) -> Self {
        Self { file: path.display().to_string(), changed }
    }
}

impl Report for Written {
    const COMMAND: &'static str = "catalog";

    fn text(&self, _: Paint) -> String {
        let what = if self.changed { "was written" } else { "was up to date" };
        format!("`{}` {what}", self.file)
    }
}

#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    drifts: Vec<Drifted>,
}

#[derive(Debug, Serialize)]
struct Drifted {
    kind: &'static str,
    /// The handler that it is about, by its name in the code, if it is about one.
    handler: Option<String>,
    text: String,
    /// The line that acknowledges it, where keys would be forgotten.
    acknowledgement: Option<String>,
}

impl Checked {
    fn of(path: &Path, drifts: &[Drift]) -> Self {
        Self { file: path.display().to_string(), drifts: drifts.iter().map(Drifted::of).collect() }
    }
}

impl Drifted {
    fn of(drift: &Drift) -> Self {
        let (kind, handler) = match drift {
            Drift::Missing => ("missing", None),
            Drift::Unreadable(_) => ("unreadable", None),
            Drift::Renamed { to, .. } => ("renamed", Some(to)),
            Drift::KeyChanged { handler, .. } => ("key_changed", Some(handler)),
            Drift::Unused { .. } => ("unused_acknowledgement", None),
            Drift::Stale { .. } => ("stale", None),
        };
        Self { kind, handler: handler.cloned(), text: drift.to_string(), acknowledgement: drift.acknowledgement() }
    }
}

impl Report for Checked {
    const COMMAND: &'static str = "catalog";

    fn text(&self, paint: Paint) -> String {
        if self.drifts.is_empty() {
            return format!("`{}` is up to date", self.file);
        }
        let texts: Vec<_> = self.drifts.iter().map(|drift| drift.text.as_str()).collect();
        format!(
            "{}: {}\nhelp: `catalog --output {}` writes it as well",
            paint.bad(&format!("catalog `{}`", self.file)),
            texts.join("\n"),
            self.file
        )
    }

    fn exit(&self) -> Exit {
        if self.drifts.is_empty() { Exit::Fine } else { Exit::No }
    }
}
