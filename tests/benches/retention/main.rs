//! The purge beside consumers, on PostgreSQL.
//!
//! - `cargo bench -p idem-tests --features databases --bench retention -- beside [KEYS] [EXPIRED]`: deletes the expired keys
//!   of a large table while eight consumers run, four seconds with the purge and four without in turns.
//! - `cargo bench -p idem-tests --features databases --bench retention -- balance [MINUTES] [EVENTS PER SECOND]`: events come
//!   and keys go at one rate; the size of the table against the same rows in a new one, every half minute.
//!
//! `IDEM_TEST_PG_URL` names the server.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

#[cfg(feature = "databases")]
mod balance;
#[cfg(feature = "databases")]
mod beside;
#[cfg(feature = "databases")]
mod load;

#[cfg(feature = "databases")]
fn main() {
    use idem_tests::Db;

    // Cargo adds a word of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |index: usize, default: u64| words.get(index).map_or(default, |word| word.parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match words.first().map(String::as_str) {
        Some("beside") => {
            let (keys, expired) = (number(1, 10_000_000), number(2, 1_000_000));
            runtime.block_on(Db::test(async |db| beside::run(&db, keys, expired).await));
        }
        Some("balance") => {
            let (minutes, rate) = (number(1, 35), number(2, 1_000));
            runtime.block_on(Db::test(async |db| balance::run(&db, minutes, rate).await));
        }
        _ => println!("retention: nothing was run; `-- beside` or `-- balance` says what (see benches/retention.rs)"),
    }
}

#[cfg(not(feature = "databases"))]
fn main() {
    println!("retention: needs `--features databases`");
}
