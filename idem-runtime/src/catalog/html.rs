//! The catalog as one page: for a browser, for paper, and for a reader that is read to.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Catalog;
use super::entry::{Entry, Kind};
use super::facts::{self, Span, visible};
use super::figures::Measured;
use super::markdown::anchor;
use super::picture;

/// Nothing is loaded, and the page says so: a browser that is told otherwise refuses.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn page(catalog: &Catalog) -> String {
    let entries = || catalog.entries.values();
    let measured = catalog.measured();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (facts::TITLE) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                a.skip href="#handlers" { "To the handlers" }
                (picture::definitions())
                header {
                    h1 { (facts::TITLE) }
                    p { (facts::LEAD) }
                    p.counts { (counts(catalog)) }
                }
                main {
                    section aria-labelledby="summary" {
                        h2 id="summary" { "Summary" }
                        (summary(catalog))
                    }
                    @if !measured.is_empty() {
                        section aria-labelledby="figures" {
                            h2 id="figures" { (facts::FIGURES_TITLE) }
                            p { (facts::FIGURES_LEAD) }
                            (figures(&measured))
                        }
                    }
                    div id="handlers" tabindex="-1" {
                        @for (index, entry) in entries().enumerate() { (handler(entry, index)) }
                    }
                }
            }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    page
}

/// How many there are of each kind.
fn counts(catalog: &Catalog) -> String {
    let kinds = [Kind::Idempotent, Kind::AtMostOnce, Kind::NaturallyIdempotent];
    let count = |kind| catalog.entries.values().filter(|entry| entry.semantics == kind).count();
    let kinds: Vec<_> = kinds.map(|kind| format!("{} {}", count(kind), kind.text())).into();
    let undeclared = catalog.entries.values().filter(|entry| entry.has_key() && entry.redelivery.is_empty()).count();
    let all = catalog.len();
    let handlers = if all == 1 { "handler" } else { "handlers" };
    format!("{all} {handlers}: {}. {undeclared} without declared redelivery.", kinds.join(", "))
}

fn summary(catalog: &Catalog) -> Markup {
    html! {
        div.table role="region" aria-labelledby="summary" tabindex="0" {
            table {
                thead { tr { @for column in facts::COLUMNS { th scope="col" { (column) } } } }
                tbody {
                    @for entry in catalog.entries.values() {
                        tr {
                            th scope="row" { a href={ "#" (anchor(entry)) } { code { (visible(entry.name)) } } }
                            @for cell in facts::summary(entry) { td { (inline(&cell)) } }
                        }
                    }
                }
            }
        }
    }
}

fn figures(measured: &[Measured<'_>]) -> Markup {
    html! {
        div.table role="region" aria-labelledby="figures" tabindex="0" {
            table.figures {
                thead { tr { @for column in facts::FIGURE_COLUMNS { th scope="col" { (column) } } } }
                tbody {
                    @for row in measured {
                        tr {
                            th scope="row" {
                                code { (visible(row.handler)) }
                                @if row.orphaned { " (orphaned)" }
                            }
                            @for cell in facts::figure_cells(row) { td.short[cell.ends_with(facts::SHORT)] { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

fn handler(entry: &Entry, index: usize) -> Markup {
    let anchor = anchor(entry);
    html! {
        section.handler id=(anchor) aria-labelledby={ "title-" (index) } {
            h2 id={ "title-" (index) } {
                a href={ "#" (anchor) } { code { (visible(entry.name)) } }
                " " span.(badge(entry.semantics)) { (entry.semantics.text()) }
            }
            @if !entry.summary.is_empty() { p.lead { (visible(entry.summary)) } }
            @if let Some(retention) = entry.retention_secs {
                figure {
                    (picture::timeline(entry, retention, index))
                    @if entry.redelivery.is_empty() { figcaption { "Redelivery " (facts::UNDECLARED) "." } }
                }
            } @else {
                (reason(entry))
            }
            dl {
                @for (label, values) in grouped(entry) {
                    div {
                        dt { (label) }
                        @for value in values { dd { (inline(&value)) } }
                    }
                }
            }
        }
    }
}

/// Instead of a picture, where there is no time to show: why there is none, and what it costs.
fn reason(entry: &Entry) -> Markup {
    html! {
        div.reason {
            p { strong { "No key, no window. " } (visible(entry.reason.unwrap_or(facts::NONE))) }
            @if let Some(loss) = entry.loss { p.loss { strong { "Lost on failure: " } (visible(loss)) } }
        }
    }
}

/// Lines with one label stand together. What the handler's box says already is left out.
fn grouped(entry: &Entry) -> Vec<(&'static str, Vec<Vec<Span<'_>>>)> {
    let mut groups: Vec<(&'static str, Vec<Vec<Span<'_>>>)> = Vec::new();
    for fact in facts::facts(entry).into_iter().filter(|fact| !facts::IS_IN_BOX.contains(&fact.label)) {
        match groups.last_mut() {
            Some((label, values)) if *label == fact.label => values.push(fact.value),
            _ => groups.push((fact.label, vec![fact.value])),
        }
    }
    groups
}

const fn badge(kind: Kind) -> &'static str {
    match kind {
        Kind::Idempotent => "keyed",
        Kind::AtMostOnce => "lossy",
        Kind::NaturallyIdempotent => "natural",
    }
}

fn inline(spans: &[Span<'_>]) -> Markup {
    html! {
        @for span in spans {
            @match span {
                Span::Text(text) => (visible(text)),
                Span::Code(code) => code { (visible(code)) },
            }
        }
    }
}
