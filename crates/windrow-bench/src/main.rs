//! Generators and benches.
fn main() {}
