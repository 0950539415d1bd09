//! The examples, built once, so that the many runs do not each wait for cargo's lock.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The features that the tests themselves were built with, so that nothing is built a second time.
const FEATURES: [(&str, bool); 6] = [
    ("databases", cfg!(feature = "databases")),
    ("rabbitmq", cfg!(feature = "rabbitmq")),
    ("nats", cfg!(feature = "nats")),
    ("redis", cfg!(feature = "redis")),
    ("kafka", cfg!(feature = "kafka")),
    ("sqs", cfg!(feature = "sqs")),
];

/// Builds an example, and says where it is.
pub(crate) fn build(name: &str) -> PathBuf {
    let features = FEATURES.iter().filter(|(_, is_on)| *is_on);
    let features: Vec<_> =
        features.map(|(feature, _)| format!("idem-tests/{feature},idem-examples/{feature}")).collect();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--workspace", "--example", name, "--message-format=json"])
        .args(["--features", &features.join(",")])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let messages = String::from_utf8(built.stdout).unwrap();
    let programs = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    programs.rev().find_map(|message| message["executable"].as_str().map(PathBuf::from)).unwrap()
}
