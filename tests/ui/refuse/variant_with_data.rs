#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Method {
    Card(String),
    Transfer { iban: String },
    Cash,
}

fn main() {}
