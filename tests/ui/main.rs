//! What must not compile, with the words that its author reads; and what must compile in a hostile crate.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The compiler whose words the `.stderr` files hold. rustc words its messages anew in almost every release, so on any
/// other compiler only what must compile is tried.
const PINNED: &str = "rustc 1.95.0 ";

#[test]
fn accepted_forms_and_hostile_crates_compile() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

/// Apart from what compiles: without a program to run, trybuild has all of them compiled by one call of cargo.
#[test]
fn refusals_read_well() {
    let cases = trybuild::TestCases::new();
    let compiler = compiler();
    if compiler.starts_with(PINNED) {
        cases.compile_fail("ui/refuse/*.rs");
    } else {
        say(&format!("SKIPPED: the texts of ui/refuse belong to {PINNED}and this is {compiler}"));
    }
}

/// One name for the check, for the case that shows its text, and for the heading that says more.
#[test]
fn every_refusal_has_a_case_and_a_heading() {
    let headings = include_str!("../../docs/diagnostics.md");
    let names = refusals(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../idem-macros/src")));
    assert!(names.len() > 40, "{names:?}");
    for name in &names {
        let case = concat!(env!("CARGO_MANIFEST_DIR"), "/ui/refuse/").to_owned() + name + ".stderr";
        assert!(Path::new(&case).exists(), "{case} is missing");
        assert!(headings.contains(&format!("\n## {name}\n")), "docs/diagnostics.md has no heading `{name}`");
    }
}

/// What stands behind `fn refuse_` anywhere in the macro's source.
fn refusals(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(refusals(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(path).unwrap();
            let found = source.split("fn refuse_").skip(1).filter_map(|rest| rest.split('(').next());
            names.extend(found.map(str::to_owned));
        }
    }
    names
}

fn compiler() -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output().unwrap();
    String::from_utf8(version.stdout).unwrap()
}

/// Past what captures the output of tests: a skip is never silent.
fn say(line: &str) {
    use std::io::Write;
    writeln!(std::io::stderr().lock(), "{line}").unwrap();
}
