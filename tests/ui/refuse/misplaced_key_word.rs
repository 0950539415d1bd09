#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key(rename = "order")]
struct OrderId(u64);

#[derive(KeyPart)]
struct LineId(#[key(rename = "line")] u64);

#[derive(KeyPart)]
enum Kind {
    #[key(crate = idem_runtime)]
    Paid,
}

fn main() {}
