//! The `windrow` binary: sorts, compacts, merges and checks files inside a memory limit.

mod changelog;
mod error;
mod format;
mod input;
mod inspect;
mod output;

fn main() {}
