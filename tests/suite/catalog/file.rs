//! The check as a user writes it: one line, on a file.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;

use idem_runtime::{Catalog, Drift, Unreadable, assert_catalog};

use super::catalog;
use super::handlers::ALL;

/// Where the process that is started by the test finds its file.
const FILE: &str = "IDEM_TEST_CATALOG";

/// What the line fails with; empty when it passes.
fn failure(path: &Path) -> String {
    let checked = catch_unwind(|| assert_catalog!(path, crates = [idem_tests]));
    checked.err().map_or_else(String::new, |panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn one_line_compares_the_handlers_that_are_linked() {
    if std::env::var_os("IDEM_BLESS").is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handlers.md");
    assert!(failure(&path).contains("there is no such file\nhelp: `IDEM_BLESS=1 cargo test`"), "{}", failure(&path));
    let text = Catalog::load().unwrap().markdown();
    fs::write(&path, text.replace('\n', "\r\n")).unwrap();
    assert_eq!(failure(&path), "");
    fs::write(&path, text.replacen("- retention: 1d12h", "- retention: 9d", 1)).unwrap();
    assert!(failure(&path).contains("    - retention: 9d\n    + retention: 1d12h"), "{}", failure(&path));
}

#[test]
fn one_line_writes_the_file_when_it_is_told_to() {
    if let Some(file) = std::env::var_os(FILE) {
        assert_catalog!(&file);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/handlers.md");
    let run = |bless: &str| {
        let mut tests = Command::new(std::env::current_exe().unwrap());
        tests.args(["--exact", "catalog::file::one_line_writes_the_file_when_it_is_told_to"]);
        tests.env(FILE, &path).env("IDEM_BLESS", bless).output().unwrap().status.success()
    };
    assert!(!run("0") && !path.exists());
    assert!(run("1"));
    assert_eq!(fs::read_to_string(&path).unwrap(), Catalog::load().unwrap().markdown());
    assert!(run("0"));
}

#[test]
fn a_file_is_written_only_if_it_differs_and_only_over_a_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handlers.md");
    let catalog = catalog(&ALL);
    assert_eq!(catalog.drifts_of_file(&path), [Drift::Missing]);
    assert_eq!(catalog.bless_file(&path), Ok(true));
    assert_eq!(catalog.bless_file(&path), Ok(false));
    fs::write(&path, "notes").unwrap();
    assert_eq!(catalog.bless_file(&path), Err(vec![Drift::Unreadable(Unreadable::Foreign)]));
    assert_eq!(fs::read_to_string(&path).unwrap(), "notes");
    let is_file_error = |drifts: &[Drift]| matches!(drifts, [Drift::Unreadable(Unreadable::File(_))]);
    assert!(is_file_error(&catalog.drifts_of_file(folder.path())));
    assert!(is_file_error(&catalog.bless_file(folder.path()).unwrap_err()));
}
