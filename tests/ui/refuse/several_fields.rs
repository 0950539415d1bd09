#![allow(dead_code)]

use idem_runtime::KeyPart;
use std::marker::PhantomData;

#[derive(KeyPart)]
struct OrderId {
    tenant: u32,
    number: u64,
    kind: PhantomData<Paid>,
}

#[derive(KeyPart)]
struct LineId(u64, u8);

struct Paid;

fn needs_a_part(_: &impl KeyPart) {}

// The type is refused once, and not where it is used as well.
fn uses(id: &OrderId) {
    needs_a_part(id);
}

fn main() {}
