//! Stands in for the example until its adapter is here.

fn main() {}
