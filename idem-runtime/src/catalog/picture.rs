//! The picture of a handler: the redelivery terms, stacked on one axis of time against the retention, what is between
//! the two, and the providers' windows beside them.

use std::fmt;

use maud::{Markup, html};

use super::entry::Entry;
use super::facts::{self, visible};
use super::length;

const WIDTH: f64 = 920.0;
/// Where the axis begins and ends: left of it stand the rows' names.
const LEFT: f64 = 150.0;
const RIGHT: f64 = 900.0;
const TOP: f64 = 12.0;
const BAR: f64 = 26.0;
const ROW: f64 = 38.0;
const AXIS: f64 = 26.0;
/// As wide as a character of the pictures' text is, or a little less.
const CHARACTER: f64 = 6.8;
/// A provider's window goes on at most so far beyond the rest; a longer one is cut, and has an arrow.
const BEYOND: f64 = 1.3;
const MOST_TICKS: u64 = 8;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const STEPS: [u64; 20] = [
    1,
    5,
    15,
    60,
    5 * 60,
    15 * 60,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
    30 * DAY,
    90 * DAY,
    180 * DAY,
    365 * DAY,
    1_825 * DAY,
    3_650 * DAY,
];

/// What all pictures of the page use.
pub(super) fn definitions() -> Markup {
    html! {
        svg.definitions width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.hatch-ground width="7" height="7" {}
                    line.hatch-line x1="0" y1="0" x2="0" y2="7" {}
                }
            }
        }
    }
}

/// A place in the picture, to a tenth.
struct At(f64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.0)
    }
}

/// The axis of time.
#[derive(Clone, Copy)]
struct Scale {
    end_secs: f64,
}

impl Scale {
    fn of(entry: &Entry, retention: u64) -> Self {
        let must_fit = retention.max(entry.redelivery_secs.unwrap_or_default()) as f64;
        let windows = entry.external.iter().filter_map(|effect| effect.window_secs);
        let wanted = windows.max().unwrap_or_default() as f64;
        Self { end_secs: wanted.clamp(must_fit, must_fit * BEYOND) }
    }

    fn x(self, secs: u64) -> f64 {
        LEFT + (secs as f64 / self.end_secs).min(1.0) * (RIGHT - LEFT)
    }

    fn shows(self, secs: u64) -> bool {
        secs as f64 <= self.end_secs
    }

    fn ticks(self) -> Vec<u64> {
        let fits = |step: &&u64| self.end_secs / (**step as f64) <= MOST_TICKS as f64;
        let longest = STEPS[STEPS.len() - 1];
        let step = STEPS.iter().find(fits).copied().unwrap_or(longest);
        (0..=MOST_TICKS * 2).map(|index| index * step).take_while(|secs| self.shows(*secs)).collect()
    }
}

/// One bar, with its text inside or, where that is too narrow, to be said elsewhere.
struct Bar<'a> {
    class: String,
    from: f64,
    to: f64,
    y: f64,
    text: &'a str,
}

impl Bar<'_> {
    fn fits(&self) -> bool {
        width(self.text) + 10.0 <= self.to - self.from
    }

    fn draw(&self) -> Markup {
        let (width, middle) = ((self.to - self.from).max(1.0), f64::midpoint(self.from, self.to));
        html! {
            rect.(self.class) x=(At(self.from)) y=(At(self.y)) width=(At(width)) height=(At(BAR)) {
                title { (visible(self.text)) }
            }
            @if self.fits() {
                text.inside.{ "on-" (self.class) } x=(At(middle)) y=(At(self.y + 17.5)) { (visible(self.text)) }
            }
        }
    }
}

/// The picture, and below it the names of the bars that are too narrow for theirs.
pub(super) fn timeline(entry: &Entry, retention: u64, index: usize) -> Markup {
    let scale = Scale::of(entry, retention);
    let windows: Vec<_> =
        entry.external.iter().filter_map(|effect| Some((effect.provider, effect.window_secs?))).collect();
    let rows = 2.0 + windows.len() as f64;
    let (bottom, height) = (TOP + rows * ROW, TOP + rows * ROW + AXIS);
    let terms: Vec<_> =
        entry.redelivery.iter().map(|term| format!("{} {}", term.source, length::exact(term.secs))).collect();
    let bars = stack(entry, &terms, scale);
    let (title, description) = (format!("title-{index}-picture"), format!("text-{index}-picture"));
    let kept = length::exact(retention);
    html! {
        svg.timeline viewBox={ "0 0 " (WIDTH) " " (At(height)) } role="img" aria-labelledby={ (title) " " (description) } {
            title id=(title) { "Redelivery against retention of " (visible(entry.name)) }
            desc id=(description) { (visible(&spoken(entry, &kept, &windows))) }
            g aria-hidden="true" {
                (axis(scale, bottom))
                (row_name("redelivery", 0.0))
                @if bars.is_empty() { (undeclared(scale.x(retention))) }
                @for bar in &bars { (bar.draw()) }
                (slack(entry, retention, scale))
                (row_name("retention", 1.0))
                (Bar { class: "kept".into(), from: LEFT, to: scale.x(retention), y: TOP + ROW, text: &kept }.draw())
                @for (row, (provider, secs)) in windows.iter().enumerate() {
                    (window(provider, *secs, 2.0 + row as f64, scale))
                }
                line.end x1=(At(scale.x(retention))) y1=(At(TOP - 8.0)) x2=(At(scale.x(retention))) y2=(At(bottom)) {}
            }
        }
        @if bars.iter().any(|bar| !bar.fits()) {
            ol.legend aria-label="redelivery terms, in the picture from left to right" {
                @for (index, term) in terms.iter().enumerate() {
                    li { span.swatch.(colour(index)) {} (visible(term)) }
                }
            }
        }
    }
}

fn colour(index: usize) -> String {
    format!("term-{}", index % 8)
}

/// The terms, one after the other.
fn stack<'a>(entry: &Entry, texts: &'a [String], scale: Scale) -> Vec<Bar<'a>> {
    let mut sum = 0_u64;
    let mut bars = Vec::new();
    for (index, (term, text)) in entry.redelivery.iter().zip(texts).enumerate() {
        let from = scale.x(sum);
        sum = sum.saturating_add(term.secs);
        bars.push(Bar { class: colour(index), from, to: scale.x(sum), y: TOP, text });
    }
    bars
}

/// The time between the sum of the terms and the end of the retention.
fn slack(entry: &Entry, retention: u64, scale: Scale) -> Markup {
    let (Some(sum), Some(text)) = (entry.redelivery_secs, facts::slack(entry)) else {
        return html! {};
    };
    if sum > retention {
        return Bar { class: "short".into(), from: scale.x(retention), to: scale.x(sum), y: TOP, text: &text }.draw();
    }
    let (from, to) = (scale.x(sum), scale.x(retention));
    let text = format!("slack {text}");
    let is_wide = width(&text) + 22.0 <= to - from;
    html! {
        rect.slack x=(At(from)) y=(At(TOP)) width=(At((to - from).max(1.0))) height=(At(BAR)) { title { (text) } }
        @if is_wide {
            @let middle = f64::midpoint(from, to);
            rect.plate x=(At(middle - width(&text) / 2.0 - 5.0)) y=(At(TOP + 4.0)) width=(At(width(&text) + 10.0))
                height=(At(BAR - 8.0)) rx="3" {}
            text.inside x=(At(middle)) y=(At(TOP + 17.5)) { (text) }
        } @else if to + width(&text) + 8.0 <= WIDTH {
            text.beside x=(At(to + 6.0)) y=(At(TOP + 17.5)) { (text) }
        } @else {
            // No place to the right: below, beside nothing.
            text.below x=(At(to - 4.0)) y=(At(TOP + BAR + 10.5)) { (text) }
        }
    }
}

/// Where the terms would stand.
fn undeclared(to: f64) -> Markup {
    html! {
        rect.undeclared x=(At(LEFT)) y=(At(TOP)) width=(At(to - LEFT)) height=(At(BAR)) {}
        text.inside x=(At(f64::midpoint(LEFT, to))) y=(At(TOP + 17.5)) { "not declared" }
    }
}

fn window(provider: &str, secs: u64, row: f64, scale: Scale) -> Markup {
    let y = TOP + row * ROW;
    let (to, is_cut) = (scale.x(secs), !scale.shows(secs));
    let text = format!("provider's window {}{}", length::exact(secs), if is_cut { " →" } else { "" });
    let bar = Bar { class: "window".into(), from: LEFT, to, y, text: &text };
    html! {
        (row_name(provider, row))
        (bar.draw())
        @if !bar.fits() { text.beside x=(At(to + 6.0)) y=(At(y + 17.5)) { (text) } }
    }
}

fn axis(scale: Scale, bottom: f64) -> Markup {
    html! {
        @for secs in scale.ticks() {
            @let x = At(scale.x(secs));
            line.grid x1=(x) y1=(At(TOP - 4.0)) x2=(x) y2=(At(bottom)) {}
            text.tick x=(x) y=(At(bottom + 16.0)) { @if secs == 0 { "0" } @else { (length::exact(secs)) } }
        }
        line.axis x1=(At(LEFT)) y1=(At(bottom)) x2=(At(RIGHT)) y2=(At(bottom)) {}
    }
}

/// Cut where it is too long for its place.
fn row_name(name: &str, row: f64) -> Markup {
    let name = visible(name);
    let place = LEFT - 14.0;
    let shown = if width(&name) <= place {
        name.to_string()
    } else {
        let mut kept = name.to_string();
        while width(&kept) > place - 2.0 * CHARACTER {
            kept.pop();
        }
        format!("{}…", kept.trim_end())
    };
    html! {
        text.row x=(At(LEFT - 10.0)) y=(At(TOP + row * ROW + 17.5)) {
            (shown)
            @if shown != name { title { (name) } }
        }
    }
}

/// An estimate: no font is at hand to be asked.
fn width(text: &str) -> f64 {
    text.chars().map(|c| if c.is_ascii() { CHARACTER } else { CHARACTER * 2.0 }).sum()
}

/// The picture in words.
fn spoken(entry: &Entry, kept: &str, windows: &[(&str, u64)]) -> String {
    let mut text = match facts::terms(entry) {
        Some(terms) => format!("Redelivery {terms}."),
        None => "Redelivery is not declared.".to_owned(),
    };
    text.push_str(&format!(" Retention {kept}."));
    if let Some(slack) = facts::slack(entry) {
        text.push_str(&format!(" Slack {slack}."));
    }
    for (provider, secs) in windows {
        text.push_str(&format!(" {provider} recognises a repeated key for {}.", length::exact(*secs)));
    }
    text
}
