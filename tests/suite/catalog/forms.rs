//! The three forms, as files. `IDEM_BLESS=1` writes them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use idem_runtime::{Catalog, Figures};
use serde_json::Value;

use super::catalog;
use super::handlers::{ALL, CREDIT, IMPORT};

pub(super) fn figures() -> Vec<Figures> {
    let days = |days: u64| Some(Duration::from_secs(days * 86_400));
    vec![
        Figures {
            handler: "billing/credit-balance".into(),
            rows: Some(1_204_331),
            oldest_key_age: Some(Duration::from_secs(7 * 86_400 + 1_320)),
            purge_lag: Some(Duration::from_secs(1_320)),
            highest_duplicate_age: Some(Duration::from_secs(4 * 86_400 + 3_700)),
            bytes_per_row: Some(212),
            keys_per_day: Some(172_040.4),
        },
        Figures { handler: "import_row".into(), rows: Some(0), highest_duplicate_age: days(15), ..Figures::default() },
        Figures { handler: "old_import".into(), rows: Some(88), oldest_key_age: days(12), ..Figures::default() },
    ]
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/catalog").join(name);
    if std::env::var_os("IDEM_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    assert!(text == expected, "{name} differs; IDEM_BLESS=1 writes it:\n{text}");
}

#[test]
fn each_form_is_as_in_its_file() {
    let catalog = catalog(&ALL);
    golden("handlers.md", &catalog.markdown());
    golden("handlers.json", &catalog.json());
    golden("handlers.html", &catalog.html());
}

#[test]
fn figures_are_a_part_of_their_own() {
    let catalog = catalog(&ALL).with_figures(figures());
    golden("figures.md", &catalog.markdown());
    golden("figures.json", &catalog.json());
    golden("figures.html", &catalog.html());
}

#[test]
fn the_order_of_registration_changes_nothing() {
    let mut reversed = ALL;
    reversed.reverse();
    let texts = |catalog: Catalog| [catalog.markdown(), catalog.json(), catalog.html()];
    assert_eq!(texts(catalog(&ALL)), texts(catalog(&reversed)));
}

#[test]
fn no_form_tells_a_line_or_a_machine() {
    let mut moved = CREDIT;
    moved.place.line = 4711;
    let texts = |catalog: Catalog| [catalog.markdown(), catalog.json(), catalog.html()];
    assert_eq!(texts(catalog(&[CREDIT])), texts(catalog(&[moved])));
    moved.place.file = r"C:\Users\somebody\billing\src\payments.rs";
    for text in texts(catalog(&[moved])) {
        assert!(text.contains("…/src/payments.rs") && !text.contains("somebody"), "{text}");
    }
}

#[test]
fn what_follows_from_the_figures_is_worked_out() {
    let json: Value = serde_json::from_str(&catalog(&ALL).with_figures(figures()).json()).unwrap();
    let [credit, import, orphan] = &json["figures"].as_array().unwrap()[..] else { panic!("three figures") };
    assert_eq!(credit["duplicate_slack_secs"], 3 * 86_400 - 3_700);
    assert_eq!(credit["expected_bytes"], 255_307_954);
    assert_eq!(import["duplicate_slack_secs"], -86_400);
    assert_eq!((&orphan["orphaned"], &orphan["expected_bytes"]), (&Value::Bool(true), &Value::Null));
}

#[test]
fn json_is_versioned_and_adds_up() {
    let json: Value = serde_json::from_str(&catalog(&[CREDIT, IMPORT]).json()).unwrap();
    assert_eq!((&json["version"], json.get("figures")), (&Value::from(1), None));
    let [credit, import] = &json["handlers"].as_array().unwrap()[..] else { panic!("two handlers") };
    assert_eq!((&credit["redelivery_secs"], &credit["slack_secs"]), (&Value::from(518_400), &Value::from(86_400)));
    assert_eq!((&import["redelivery_secs"], &import["slack_secs"]), (&Value::Null, &Value::Null));
}

#[test]
fn an_http_route_says_whose_keys_it_keeps() {
    use idem_runtime::{Catalog, KeyedRoute, http_route};

    http_route! {
        /// Creates a payment.
        static CREATE: KeyedRoute = KeyedRoute::new("catalog.route", "POST /payments").retention("24h").scope("account");
    }
    let meta = CREATE.keys().unwrap();
    assert_eq!((meta.name, meta.summary), ("catalog.route", "Creates a payment."));
    let catalog = Catalog::load().unwrap();
    let page = catalog.markdown();
    let line = "`POST /payments`; a key belongs to: account; without a key: refused; key in flight: rejected";
    assert!(page.contains(line), "{page}");
}

#[test]
fn a_webhooks_route_says_who_sends_and_what_comes_before_the_answer() {
    use idem_runtime::{Catalog, WebhookRoute, http_route};

    http_route! {
        /// Stores the events of the provider.
        static DOOR: WebhookRoute =
            WebhookRoute::new("catalog.door", "POST /door", "the provider").accept("35d").fingerprint();
    }
    let page = Catalog::load().unwrap().markdown();
    assert_eq!(DOOR.keys().unwrap().summary, "Stores the events of the provider.");
    for line in [
        "`POST /door`; events of the provider; stored, answered, and applied later",
        "`POST /strict`; events of the provider; applied, then answered",
        "`body`: an equal key with another fingerprint is a mismatch, which HTTP answers 422",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}
