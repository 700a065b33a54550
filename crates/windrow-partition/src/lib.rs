//! Record batches split into partitions, and sent as pages.
//!
//! ```text
//! RecordBatch --Partitioner--> Partitioned: one permuted record batch, and offsets into it
//! RecordBatch --PartitionBuilder--> chunks of each partition, within a budget
//! RecordBatch --PrestoPages, IpcPages--> pages --> RecordBatch
//! ```
//!
//! The crate is a part of [windrow](https://docs.rs/windrow), which exports all of it. Orders and
//! errors are those of [windrow-rows](https://docs.rs/windrow-rows), budgets those of
//! [windrow-pool](https://docs.rs/windrow-pool). The features `presto` and `ipc` add the formats of
//! pages.

#![forbid(unsafe_code)]

#[cfg(any(feature = "ipc", feature = "presto"))]
mod page;
mod partition;

#[cfg(any(feature = "ipc", feature = "presto"))]
pub use page::*;
pub use partition::*;
