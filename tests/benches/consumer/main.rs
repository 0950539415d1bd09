//! One consumer beside the bare loop of each broker's client with a transaction written by hand, on PostgreSQL.
//!
//! `cargo bench -p idem-tests --features servers --bench consumer [-- BROKER TURNS]` (the services named by their variables,
//! as `eval "$(tests/run --services-only)"` sets them): `nats 5` is five turns of NATS alone. Each turn sends the same number
//! of deliveries through each way, and the ways take turns. Amazon SQS is left out: what can be had here is an emulator,
//! whose speed says nothing.
//!
//! `… -- million` sends a million deliveries through a queue in SQLite, and looks at the memory.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]
#![allow(clippy::cast_precision_loss, reason = "a benchmark")]

#[cfg(feature = "servers")]
mod brokers;
#[cfg(feature = "servers")]
mod million;
#[cfg(feature = "servers")]
mod ways;

#[cfg(feature = "servers")]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "million") {
        return million::run().await;
    }
    let turns = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(7);
    // Cargo adds `--bench`.
    let is_broker = |argument: &&String| !argument.starts_with('-') && argument.parse::<usize>().is_err();
    ways::run(turns, arguments.iter().find(is_broker).map(String::as_str)).await;
}

#[cfg(not(feature = "servers"))]
fn main() {
    println!("consumer: needs `--features servers`");
}
