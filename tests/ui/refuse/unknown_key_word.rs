#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key(rename_all = "snake_case")]
enum Kind {
    #[key(renam = "paid")]
    Paid,
    #[key(text = "refunded")]
    Refunded,
}

fn main() {}
