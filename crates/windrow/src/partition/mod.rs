//! Partitioning: a record batch split into partitions, and the ways to say which row goes where.
//!
//! ```text
//!            Partitioner                        Splitter
//!  batch --> hash | range | round robin --> ids --> plan --> columns --> Partitioned
//!                                      given ids /                        one permuted record batch
//!                                                                         and offsets into it
//!
//!  rows 0 1 2 3 4 5    ids 1 0 1 2 0 1    permuted | 1 4 | 0 2 5 | 3 |    offsets 0 2 5 6
//! ```
//!
//! A [`PartitionBuilder`] gathers many record batches into chunks of each partition, inside a budget.
//!
//! Invariant: stable, always - the rows of a partition keep the order they had; what is split is
//! what was there, row by row, in the same types and encodings.

mod builder;
mod columns;
mod concat;
mod flat;
mod hash;
mod keys;
mod memory;
mod nested;
mod nested_words;
mod partitioned;
mod partitioner;
mod range;
mod runs;
mod splitter;
mod waiting;
mod words;

pub use builder::{PartitionBuilder, PartitionChunks};
pub use partitioned::{Partitioned, Partitions};
pub use partitioner::Partitioner;
