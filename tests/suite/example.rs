//! The examples, built once, so that the many runs do not each wait for cargo's lock.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Builds an example, and says where it is.
pub(crate) fn build(name: &str, options: &[&str]) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "idem-examples", "--example", name, "--message-format=json"])
        .args(options)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let messages = String::from_utf8(built.stdout).unwrap();
    let programs = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    programs.rev().find_map(|message| message["executable"].as_str().map(PathBuf::from)).unwrap()
}
