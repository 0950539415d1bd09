#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Kind {
    Paid,
    #[key(rename = "Paid")]
    Settled,
    #[key(rename = "Void")]
    Cancelled,
    Void,
}

fn main() {}
