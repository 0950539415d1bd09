#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Kind {
    #[key(rename)]
    Paid,
    #[key(rename = refunded)]
    Refunded,
    #[key = "void"]
    Void,
    #[key("reversed")]
    Reversed,
    #[key()]
    Charged,
}

fn main() {}
