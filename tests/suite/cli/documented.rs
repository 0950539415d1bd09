//! The commands in `docs/cli.md` and `examples/README.md`, as their reader pastes them, one after the other.
#![cfg(unix)]

use std::process::{Command, Stdio};

use super::{PROGRAM, Run};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../");

/// The lines behind a `$` in the `console` blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{DOCS}{page}")).unwrap();
    let blocks = text.split("```console\n").skip(1).map(|behind| behind.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

#[test]
fn every_command_of_the_pages_works_in_its_order() {
    for (page, at_least) in [("docs/cli.md", 10), ("examples/README.md", 4)] {
        paste(page, at_least);
    }
}

fn paste(page: &str, at_least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let quickstart = crate::example::build("quickstart");
    let programs = [("ops", PROGRAM.as_path()), ("quickstart", quickstart.as_path())];
    let commands = commands(page);
    assert!(commands.len() >= at_least, "{commands:?}");
    for command in commands {
        let (name, path) = programs.iter().find(|(name, _)| command.contains(&format!("--example {name} "))).unwrap();
        // Built before, so that none waits for cargo.
        let line = command.replacen(&format!("cargo run --example {name} --"), &format!("'{}'", path.display()), 1);
        assert_ne!(line, command);
        let output = Command::new("sh").args(["-c", &line]).current_dir(&folder).stdin(Stdio::null()).output();
        let run = Run::of(output.unwrap());
        assert_eq!(run.code, Some(0), "{command}: {run:?}");
    }
}

#[test]
fn every_command_and_exit_code_is_on_the_page() {
    let page = std::fs::read_to_string(format!("{DOCS}docs/cli.md")).unwrap();
    let help = super::Db::empty().run(&["--help"]).exits(0).out;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    for command in list.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next()) {
        assert!(command == "help" || page.contains(&format!("| `{command}")), "{command}");
    }
}
