#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
union OrderId {
    number: u64,
    bytes: [u8; 8],
}

fn main() {}
