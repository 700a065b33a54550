//! Partitioning: rules that assign rows to partitions, and the split of a record batch.
//!
//! ```text
//!            Partitioner                        Splitter
//!  batch --> hash | range | round robin --> ids --> plan --> columns --> Partitioned
//!                                      given ids /                        a permuted record batch
//!                                                                         and offsets into it
//!
//!  rows 0 1 2 3 4 5    ids 1 0 1 2 0 1    permuted | 1 4 | 0 2 5 | 3 |    offsets 0 2 5 6
//! ```
//!
//! A [`PartitionBuilder`] gathers many record batches into chunks of each partition, within a
//! budget. [`StoredRows`] are one record batch in the pool's store.
//!
//! Invariant: every split is stable. The rows of a partition keep their order, and all rows keep
//! their values, types and encodings.

mod builder;
mod columns;
mod concat;
mod flat;
mod hash;
mod memory;
mod nested;
mod nested_words;
mod partitioned;
mod partitioner;
mod range;
mod replicate;
mod runs;
mod splitter;
mod stored;
mod waiting;
mod words;

pub use builder::{PartitionBuilder, PartitionChunks};
pub use partitioned::{Partitioned, Partitions};
pub use partitioner::Partitioner;
#[cfg(feature = "presto")]
pub(crate) use runs::run_ends;
pub use stored::StoredRows;
