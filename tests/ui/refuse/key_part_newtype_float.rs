#![allow(dead_code)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Price(f64);

#[derive(KeyPart)]
struct Reference {
    value: Option<String>,
}

#[derive(KeyPart)]
struct Either<T>(Option<T>);

#[derive(KeyPart)]
struct Digest<const N: usize>([u8; N]);

#[derive(KeyPart)]
struct Raw<'a>(&'a [u8]);

#[derive(KeyPart)]
struct At(std::time::SystemTime);

#[derive(KeyPart)]
struct Tags(Vec<String>);

fn main() {}
