#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Kind {
    #[key(rename = "")]
    Paid,
    Refunded,
}

fn main() {}
