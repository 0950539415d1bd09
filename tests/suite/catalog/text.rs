//! Texts that are written by hand cannot break the page; a thousand handlers are quick.

use std::time::{Duration, Instant};

use idem_runtime::{Allowed, External, Guard, HandlerMeta, Place, Retention, Semantics, Window};
use serde_json::Value;

use super::handlers::CREDIT;
use super::{but, catalog};

const NASTY: &str = "<script>alert('x')</script> | a|b `code` ``\"quoted\"`` &amp; --> <!-- idem: end --> ]]> \\ größer 漢字 \u{202e}\r\n- idem\n<<<<<<< ours";

fn nasty() -> HandlerMeta {
    let place = Place::new(NASTY, NASTY, 1);
    let mut meta = HandlerMeta::new("nasty", place, Semantics::Idempotent)
        .describe(NASTY, NASTY)
        .key(const { &[NASTY, NASTY] }, Retention::days(7))
        .redelivery(const { &[Window::new(NASTY, Retention::days(1))] })
        .fingerprint(const { &[NASTY] })
        .occurred_at(NASTY)
        .external(const { &[External::new(NASTY, Guard::Lookup, NASTY).lookup(NASTY).window(Retention::days(400))] })
        .allowed(const { &[Allowed::new(NASTY, NASTY)] });
    meta.policy = Some(NASTY);
    meta
}

fn nasty_and_lossy() -> HandlerMeta {
    let semantics = Semantics::AtMostOnce { reason: NASTY, loss: NASTY };
    let mut meta = but(nasty(), |meta| meta.semantics = semantics);
    (meta.name, meta.key, meta.retention) = ("lossy", &[], None);
    meta
}

#[test]
fn no_text_is_markup_in_html() {
    let page = catalog(&[nasty(), nasty_and_lossy()]).html();
    assert!(!page.contains("<script") && !page.contains("<!--") && !page.contains('\u{202e}'), "{page}");
    assert!(!page.contains("&amp; --"), "text that looks escaped is text as well");
    assert!(page.contains("&lt;script&gt;alert(") && page.contains("größer 漢字 \\u{202e}"), "{page}");
    // Every quotation mark of the texts is escaped, so those that are left are the attributes', two each.
    assert!(page.contains("&quot;quoted&quot;"), "{page}");
}

#[test]
fn no_text_is_a_line_of_its_own_in_markdown() {
    let handlers = [nasty(), nasty_and_lossy()];
    let text = catalog(&handlers).markdown();
    let begins = ["<!-- idem: ", "# ", "## ", "| ", "|---", "- ", "<a id=", "What each", "&lt;script"];
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(begins.iter().any(|begin| line.starts_with(begin)), "{line}");
        assert!(!line.contains('\u{202e}'), "{line}");
        // In code it is text, since no comment was begun before it.
        assert!(!line.starts_with("<!--") || line.find("-->") == Some(line.len() - 3), "{line}");
    }
    let cells = text.lines().find(|line| line.contains("#handler-nasty")).unwrap().replace("\\|", "");
    assert_eq!(cells.matches('|').count(), 9, "{cells}");
    assert_eq!(catalog(&handlers).check(&text), Ok(()));
}

#[test]
fn texts_are_whole_in_json() {
    let json: Value = serde_json::from_str(&catalog(&[nasty()]).json()).unwrap();
    let handler = &json["handlers"][0];
    for field in ["summary", "message", "occurred_at", "policy"] {
        assert_eq!(handler[field], NASTY, "{field}");
    }
    assert_eq!((&handler["key"][1], &handler["external"][0]["risk"]), (&Value::from(NASTY), &Value::from(NASTY)));
}

#[test]
#[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it measures, and shows what it measured")]
fn a_thousand_handlers_are_quick() {
    let names: Vec<&'static str> = (0..1_000).map(|number| &*format!("handler-{number:04}").leak()).collect();
    let handlers: Vec<_> = names.iter().map(|name| but(CREDIT, |meta| meta.name = name)).collect();
    let catalog = catalog(&handlers);
    let timed = |name: &str, form: &dyn Fn() -> usize| {
        let started = Instant::now();
        let bytes = form();
        let took = started.elapsed();
        println!("{name}: {took:?}, {bytes} bytes");
        took
    };
    let markdown = catalog.markdown();
    let took = timed("Markdown", &|| catalog.markdown().len())
        + timed("JSON", &|| catalog.json().len())
        + timed("HTML", &|| catalog.html().len())
        + timed("check", &|| catalog.drifts(&markdown).len());
    // The promise is 100 ms for one form of a release build; a debug build on a machine that does other things as well
    // is given time.
    let bound = if cfg!(debug_assertions) { Duration::from_secs(10) } else { Duration::from_millis(400) };
    assert!(took < bound, "{took:?}");
}
