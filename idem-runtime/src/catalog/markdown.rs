//! The catalog as Markdown, with lines between that a program reads: `committed.rs` does.

use std::fmt::Write;

use super::committed::{CHANGES, END, HANDLER, HEAD, Record};
use super::entry::Entry;
use super::facts::{self, Span, visible};
use super::figures::Measured;
use super::{Catalog, VERSION};

/// The form to commit, with the changes that were acknowledged in it.
pub(super) fn committed(catalog: &Catalog, acknowledged: &[String]) -> String {
    let mut text = format!(
        "{HEAD}{VERSION}; generated, do not edit: IDEM_BLESS=1 cargo test -->\n# {}\n\n{}\n\n",
        facts::TITLE,
        facts::LEAD
    );
    table_head(&mut text, &facts::COLUMNS);
    for entry in catalog.entries.values() {
        let name = inline(&[Span::Code(entry.name.into())], true);
        let _ = write!(text, "| [{name}](#{})", anchor(entry));
        for cell in facts::summary(entry) {
            let _ = write!(text, " | {}", inline(&cell, true));
        }
        text.push_str(" |\n");
    }
    for entry in catalog.entries.values() {
        section(&mut text, entry);
    }
    if !acknowledged.is_empty() {
        let _ = write!(text, "\n{CHANGES}\n## Acknowledged changes\n\n");
        for change in acknowledged {
            let _ = writeln!(text, "{change}");
        }
    }
    let _ = write!(text, "\n{END}\n");
    text
}

fn section(text: &mut String, entry: &Entry) {
    let record = Record::of(entry).line();
    let name = inline(&[Span::Code(entry.name.into())], false);
    let _ = write!(text, "\n{HANDLER}{record} -->\n<a id=\"{}\"></a>\n\n## {name}\n\n", anchor(entry));
    if !entry.summary.is_empty() {
        let summary = inline(&[Span::Text(entry.summary.into())], false);
        // What would make a heading, a list or a quotation at the beginning of a line.
        let begins = summary.starts_with(['-', '+', '=', '~', ':']) || is_number(&summary);
        let _ = write!(text, "{}{summary}\n\n", if begins { "&#8203;" } else { "" });
    }
    for fact in facts::facts(entry) {
        let _ = writeln!(text, "- {}: {}", fact.label, inline(&fact.value, false));
    }
}

/// The part of the figures, which is no part of the committed form; empty without any.
pub(super) fn figures(measured: &[Measured<'_>]) -> String {
    let mut text = String::new();
    if measured.is_empty() {
        return text;
    }
    let _ = write!(text, "\n## {}\n\n{}\n\n", facts::FIGURES_TITLE, facts::FIGURES_LEAD);
    table_head(&mut text, &facts::FIGURE_COLUMNS);
    for row in measured {
        let name = inline(&[Span::Code(row.handler.into())], true);
        let _ = write!(text, "| {name}{}", if row.orphaned { " (orphaned)" } else { "" });
        for cell in facts::figure_cells(row) {
            let _ = write!(text, " | {cell}");
        }
        text.push_str(" |\n");
    }
    text
}

fn table_head(text: &mut String, columns: &[&str]) {
    let _ = writeln!(text, "| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

/// Names are of letters, digits and `._:/-`, all of which may stand in an anchor; others, which no macro lets pass, are
/// replaced.
pub(super) fn anchor(entry: &Entry) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    let name: String = entry.name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    format!("handler-{name}")
}

fn inline(spans: &[Span<'_>], in_table: bool) -> String {
    let mut line = String::new();
    for span in spans {
        match span {
            Span::Text(text) => push_text(&mut line, &visible(text)),
            Span::Code(code) => push_code(&mut line, &visible(code), in_table),
        }
    }
    line
}

/// Text that means itself: nothing in it is markup.
fn push_text(line: &mut String, text: &str) {
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // Within a word an underscore is none, and escaped it would spoil every name in the file.
        let in_word = before.is_alphanumeric() && chars.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '&' => line.push_str("&amp;"),
            '<' => line.push_str("&lt;"),
            '>' => line.push_str("&gt;"),
            '\\' | '`' | '*' | '[' | ']' | '#' | '|' | '~' | '$' => line.extend(['\\', c]),
            '_' if !in_word => line.push_str("\\_"),
            c => line.push(c),
        }
        before = c;
    }
}

/// A code span: fenced by more backticks than it has inside. In a table, a bar ends the cell even there.
fn push_code(line: &mut String, code: &str, in_table: bool) {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let pad = if code.starts_with(['`', ' ']) || code.ends_with(['`', ' ']) || code.is_empty() { " " } else { "" };
    let code = if in_table { code.replace('|', "\\|") } else { code.to_owned() };
    let _ = write!(line, "{fence}{pad}{code}{pad}{fence}");
}

fn is_number(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(['.', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> String {
        inline(&[Span::Text(of.into())], false)
    }

    fn code(of: &str, in_table: bool) -> String {
        inline(&[Span::Code(of.into())], in_table)
    }

    #[test]
    fn text_means_itself() {
        assert_eq!(text("a <b> & `c` | d"), "a &lt;b&gt; &amp; \\`c\\` \\| d");
        assert_eq!(text("order_id, _x_ and *y*"), "order_id, \\_x\\_ and \\*y\\*");
        assert_eq!(text("two\r\nlines, größer\u{202e}"), "two lines, größer\\\\u{202e}");
    }

    #[test]
    fn code_keeps_its_backticks_and_bars() {
        assert_eq!(code("a`b", false), "``a`b``");
        assert_eq!(code("``", false), "``` `` ```");
        assert_eq!(code("a | b", false), "`a | b`");
        assert_eq!(code("a | b", true), "`a \\| b`");
    }
}
