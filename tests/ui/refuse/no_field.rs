#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Paid;

#[derive(KeyPart)]
struct Tag<T>(std::marker::PhantomData<T>);

fn main() {}
