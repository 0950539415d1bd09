//! What must not compile, with the words that its author reads; and what must compile in a hostile crate.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::process::Command;

/// The compiler whose words the `.stderr` files hold. rustc words its messages anew in almost every release, so on any
/// other compiler only what must compile is tried.
const PINNED: &str = "rustc 1.95.0 ";

#[test]
fn refusals_read_well_and_hostile_crates_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    let compiler = compiler();
    if compiler.starts_with(PINNED) {
        cases.compile_fail("ui/refuse/*.rs");
    } else {
        say(&format!("SKIPPED: the texts of ui/refuse belong to {PINNED}and this is {compiler}"));
    }
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
