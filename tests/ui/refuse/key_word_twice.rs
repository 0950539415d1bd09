#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Kind {
    #[key(rename = "paid", rename = "settled")]
    Settled,
    Refunded,
}

fn main() {}
