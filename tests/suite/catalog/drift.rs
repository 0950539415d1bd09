//! What a committed catalog is compared by, and what cannot be written over without a human's word.

use idem_runtime::{Catalog, Drift, HandlerMeta, Note, Retention, Semantics, Unreadable};

use super::handlers::{ALL, CREDIT, IMPORT, PRICE, RECEIPT, SHIP};
use super::{but, catalog};

/// The handlers, one of them replaced.
fn with(changed: HandlerMeta, instead_of: HandlerMeta) -> Catalog {
    catalog(&ALL.map(|meta| if meta.name == instead_of.name { changed } else { meta }))
}

fn committed() -> String {
    catalog(&ALL).markdown()
}

fn stale(catalog: &Catalog, committed: &str) -> Vec<(String, Vec<Note>)> {
    match catalog.check(committed) {
        Err(Drift::Stale { changes }) => changes.into_iter().map(|change| (change.handler, change.notes)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unchanged_file_passes_and_is_not_written_again() {
    assert_eq!(catalog(&ALL).check(&committed()), Ok(()));
    assert_eq!(catalog(&ALL).bless(Some(&committed())), Ok(committed()));
}

#[test]
fn what_editors_and_merge_tools_do_does_not_count() {
    let text = committed();
    let (body, end) = text.split_once("\n<!-- idem: end -->").unwrap();
    let mut sections: Vec<_> = body.split("\n<!-- idem: handler ").collect();
    sections[1..].reverse();
    let reordered = format!("{}\n<!-- idem: end -->{end}", sections.join("\n<!-- idem: handler "));
    assert_ne!(reordered, text);
    let variants = [
        text.replace('\n', "\r\n"),
        text.replace('\n', "  \n"),
        format!("\u{feff}{text}\n\n"),
        text.replace(" | ", "   |  ").replace("|---|", "| ----- |"),
        reordered,
    ];
    for variant in variants {
        assert_eq!(catalog(&ALL).drifts(&variant), [], "{variant}");
    }
}

#[test]
fn spaces_within_a_key_do_count() {
    let (one, two) = (&["tag(\"a b\")"], &["tag(\"a  b\")"]);
    let committed = with(but(SHIP, |meta| meta.key = one), SHIP).markdown();
    assert!(matches!(with(but(SHIP, |meta| meta.key = two), SHIP).check(&committed), Err(Drift::KeyChanged { .. })));
}

#[test]
fn a_renamed_function_is_caught_and_not_blessed() {
    let mut renamed = SHIP;
    (renamed.name, renamed.place.function) = ("send_order", "shipping::send_order");
    let catalog = with(renamed, SHIP);
    let drift = catalog.check(&committed()).unwrap_err();
    assert!(
        matches!(&drift, Drift::Renamed { from, to, .. } if (from.as_str(), to.as_str()) == ("ship_order", "send_order"))
    );
    let text = drift.to_string();
    for part in [
        "every key of `ship_order` in the window of 3d would be forgotten",
        "`name = \"ship_order\"`",
        "<!-- idem: name of `ship_order` changed to `send_order` on purpose: REASON -->",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(catalog.bless(Some(&committed())), Err(vec![drift]));
}

#[test]
fn another_name_for_the_same_function_is_caught_whatever_else_changed() {
    let renamed = but(SHIP, |meta| {
        meta.name = "ship";
        meta.message = "OrderShipped";
        meta.key = &["msg.id"];
    });
    assert!(matches!(with(renamed, SHIP).check(&committed()), Err(Drift::Renamed { .. })));
}

#[test]
fn the_successor_is_the_most_alike() {
    let committed = catalog(&[SHIP]).markdown();
    let mut elsewhere = SHIP;
    (elsewhere.name, elsewhere.place.function) = ("a_returned_order", "returns::returned_order");
    let mut beside = SHIP;
    (beside.name, beside.place.function) = ("send_order", "shipping::send_order");
    let drifts = catalog(&[elsewhere, beside]).drifts(&committed);
    assert!(matches!(&drifts[0], Drift::Renamed { to, .. } if to == "send_order"), "{drifts:?}");
    assert!(matches!(&drifts[1], Drift::Stale { .. }) && drifts.len() == 2, "{drifts:?}");
}

#[test]
fn a_handler_without_a_key_may_be_renamed() {
    let renamed = but(PRICE, |meta| meta.name = "price");
    let changes = stale(&with(renamed, PRICE), &committed());
    assert_eq!(changes, [("price".into(), vec![Note::New]), ("set_price".into(), vec![Note::Gone])]);
    // Nor does one need keys that changes nothing when it runs again.
    let natural = but(SHIP, |meta| (meta.name, meta.semantics, meta.key) = ("ship", PRICE.semantics, &[]));
    assert_eq!(stale(&with(natural, SHIP), &committed()).len(), 2);
}

#[test]
fn another_key_is_caught_and_not_blessed() {
    let catalog = with(but(CREDIT, |meta| meta.key = &["msg.payment_id"]), CREDIT);
    let drift = catalog.check(&committed()).unwrap_err();
    let text = drift.to_string();
    for part in [
        "handler `billing/credit-balance` has another key, `msg.order_id, msg.kind` in the file and `msg.payment_id` in the code",
        "in the window of 7d would be forgotten",
        "key(msg.order_id, msg.kind)",
        "name = \"billing/credit-balance.v2\"",
        "<!-- idem: key of `billing/credit-balance` changed from `msg.order_id, msg.kind` to `msg.payment_id` on purpose: \
         REASON -->",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(catalog.bless(Some(&committed())), Err(vec![drift]));
}

#[test]
fn losing_the_key_is_caught_unless_none_is_needed() {
    let without = but(CREDIT, |meta| {
        meta.key = &[];
        meta.retention = None;
        meta.redelivery = &[];
    });
    let lossy = but(without, |meta| meta.semantics = RECEIPT.semantics);
    let drift = with(lossy, CREDIT).check(&committed()).unwrap_err();
    assert!(matches!(&drift, Drift::KeyChanged { is, .. } if is.is_empty()), "{drift}");
    let natural = but(without, |meta| meta.semantics = PRICE.semantics);
    let changes = stale(&with(natural, CREDIT), &committed());
    let note = Note::SemanticsChanged { was: "idempotent".into(), is: "naturally idempotent".into() };
    assert!(matches!(&changes[..], [(_, notes)] if notes.contains(&note)), "{changes:?}");
}

#[test]
fn all_changes_are_reported_at_once_and_the_gravest_first() {
    let mut handlers = ALL.to_vec();
    for meta in &mut handlers {
        match meta.name {
            "ship_order" => meta.name = "ship",
            "import_row" => meta.key = &["row.id"],
            "send_receipt" => meta.semantics = Semantics::AtMostOnce { reason: "r", loss: "l" },
            _ => {}
        }
    }
    let drifts = catalog(&handlers).drifts(&committed());
    assert!(
        matches!(&drifts[..], [Drift::Renamed { .. }, Drift::KeyChanged { .. }, Drift::Stale { .. }]),
        "{drifts:?}"
    );
}

#[test]
fn a_retention_is_named_by_its_direction_and_can_be_blessed() {
    let days = |days| with(but(IMPORT, |meta| meta.retention = Some(Retention::days(days))), IMPORT);
    let text = days(7).check(&committed()).unwrap_err().to_string();
    assert!(text.contains("retention SHORTENED from 14d to 7d: the next purge deletes"), "{text}");
    assert!(text.contains("    - retention: 14d\n    + retention: 7d"), "{text}");
    let text = days(21).check(&committed()).unwrap_err().to_string();
    assert!(text.contains("retention lengthened from 14d to 21d"), "{text}");
    let blessed = days(21).bless(Some(&committed())).unwrap();
    assert_eq!(blessed, days(21).markdown());
    assert_eq!(days(21).check(&blessed), Ok(()));
}

#[test]
fn added_and_removed_handlers_are_named() {
    let fewer = catalog(&ALL[..5]);
    assert_eq!(stale(&fewer, &committed()), [("set_price".into(), vec![Note::Gone])]);
    let text = catalog(&ALL).check(&fewer.markdown()).unwrap_err().to_string();
    assert!(text.contains("  set_price: new\n    + Sets an article's price."), "{text}");
}

#[test]
fn another_fingerprint_and_other_words_are_named() {
    let changes = stale(&with(but(CREDIT, |meta| meta.fingerprint = &["msg.amount"]), CREDIT), &committed());
    assert_eq!(changes, [("billing/credit-balance".into(), vec![Note::FingerprintChanged])]);
    let by_hand = committed().replace("- retention: 14d", "- retention: 28d");
    assert_eq!(stale(&catalog(&ALL), &by_hand), [("import_row".into(), vec![Note::Edited])]);
    let in_the_summary = committed().replacen("| 14d |", "| 28d |", 1);
    assert_eq!(stale(&catalog(&ALL), &in_the_summary), [(String::new(), vec![Note::Edited])]);
}

#[test]
fn figures_do_not_belong_into_the_file() {
    let catalog = catalog(&ALL).with_figures(super::forms::figures());
    assert_eq!(stale(&catalog, &catalog.markdown()), [(String::new(), vec![Note::Edited])]);
    assert_eq!(catalog.check(&committed()), Ok(()));
    assert_eq!(catalog.bless(Some(&catalog.markdown())), Ok(committed()));
}

/// The file with a line in it.
fn acknowledged(line: &str) -> String {
    committed().replacen("\n\n", &format!("\n\n{line}\n"), 1)
}

#[test]
fn an_acknowledged_change_is_accepted_once_and_only_for_that_change() {
    let changed = with(but(CREDIT, |meta| meta.key = &["msg.payment_id"]), CREDIT);
    let drift = changed.check(&committed()).unwrap_err();
    let line = drift.acknowledgement().unwrap().replace("REASON", "payments are split since May");
    let file = acknowledged(&line);

    // Not without being written, and for no other change.
    let changes = stale(&changed, &file);
    assert!(
        matches!(&changes[0].1[..], [Note::Acknowledged { text }] if text.ends_with("split since May")),
        "{changes:?}"
    );
    let other = with(but(CREDIT, |meta| meta.key = &["msg.other"]), CREDIT);
    let drifts = other.drifts(&file);
    assert!(matches!(&drifts[..], [Drift::KeyChanged { .. }, Drift::Unused { .. }, ..]), "{drifts:?}");
    assert!(other.bless(Some(&file)).is_err());
    assert!(matches!(catalog(&ALL).check(&file), Err(Drift::Unused { line: 4, .. })));

    // Once it is written, it is history.
    let blessed = changed.bless(Some(&file)).unwrap();
    assert_eq!(changed.check(&blessed), Ok(()));
    let item = "- key of `billing/credit-balance` changed from `msg.order_id, msg.kind` to `msg.payment_id` on purpose: \
                payments are split since May\n";
    assert!(blessed.contains(&format!("## Acknowledged changes\n\n{item}")), "{blessed}");
    let back = catalog(&ALL).check(&blessed).unwrap_err();
    assert!(matches!(&back, Drift::KeyChanged { .. }), "{back}");

    // Back again, with a word for it, and then the first change once more: it needs a word of its own.
    let line = back.acknowledgement().unwrap().replace("REASON", "they are not");
    let returned = catalog(&ALL).bless(Some(&format!("{blessed}\n{line}"))).unwrap();
    assert!(returned.contains(item) && returned.contains("on purpose: they are not\n"), "{returned}");
    assert_eq!(catalog(&ALL).check(&returned), Ok(()));
    assert_eq!(changed.check(&returned), Err(drift));
}

#[test]
fn a_rename_can_be_acknowledged_too() {
    let renamed = with(but(SHIP, |meta| meta.name = "ship"), SHIP);
    let line = renamed.check(&committed()).unwrap_err().acknowledgement().unwrap();
    let blessed = renamed.bless(Some(&acknowledged(&line.replace("REASON", "no order is on its way")))).unwrap();
    assert_eq!(renamed.check(&blessed), Ok(()));
}

#[test]
fn any_key_can_be_acknowledged() {
    let nasty = but(CREDIT, |meta| meta.key = &["\"-->\n`\"", "f(|x| -> u8 { x })"]);
    let changed = with(nasty, CREDIT);
    let line = changed.check(&committed()).unwrap_err().acknowledgement().unwrap().replace("REASON", "why not");
    let blessed = changed.bless(Some(&acknowledged(&line))).unwrap();
    assert_eq!(changed.check(&blessed), Ok(()));
}

#[test]
fn an_acknowledgement_needs_a_reason() {
    let changed = with(but(CREDIT, |meta| meta.key = &["msg.payment_id"]), CREDIT);
    let line = changed.check(&committed()).unwrap_err().acknowledgement().unwrap();
    for line in [line.clone(), line.replace("REASON", ""), line.replace(" REASON", "")] {
        let drift = changed.check(&acknowledged(&line)).unwrap_err();
        assert_eq!(drift, Drift::Unreadable(Unreadable::NoReason { line: 4 }), "{line}");
    }
}

#[test]
fn what_is_no_catalog_is_neither_compared_nor_written_over() {
    let text = committed();
    let with_marks = text.replacen("\n\n", "\n\n<<<<<<< HEAD\n\n=======\n>>>>>>> other\n", 1);
    let (first, _) = text.split_at(text.len() / 2);
    let section = text.split("\n<!-- idem: handler ").nth(1).unwrap();
    let twice = text.replacen(section, &format!("{section}\n<!-- idem: handler {section}"), 1);
    let cases = [
        (with_marks.as_str(), Unreadable::Conflict { line: 4 }),
        (&with_marks.replace('\n', "\r\n"), Unreadable::Conflict { line: 4 }),
        ("# Our handlers\n\nWritten by hand.\n", Unreadable::Foreign),
        (&text.replacen("catalog 1;", "catalog 2;", 1), Unreadable::Version { version: 2 }),
        (first, Unreadable::Truncated),
        (&twice, Unreadable::Twice { handler: "billing/credit-balance".into() }),
        (&acknowledged("<!-- idem: whatever -->"), Unreadable::Line { line: 4 }),
        (&text.replacen("\"key\":[", "\"key\":", 1), Unreadable::Line { line: 15 }),
    ];
    for (text, why) in cases {
        let drift = Drift::Unreadable(why);
        assert_eq!(catalog(&ALL).drifts(text), std::slice::from_ref(&drift), "{text}");
        assert!(!drift.can_be_blessed());
        assert_eq!(catalog(&ALL).bless(Some(text)), Err(vec![drift]));
    }
}

#[test]
fn an_empty_file_is_none_yet() {
    for text in ["", "\n", "\u{feff} \r\n"] {
        assert_eq!(catalog(&ALL).drifts(text), [Drift::Unreadable(Unreadable::Empty)]);
        assert_eq!(catalog(&ALL).bless(Some(text)), Ok(committed()));
    }
}
