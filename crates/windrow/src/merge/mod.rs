//! Merging: runs of chunks, each sorted, into one.
//!
//! ```text
//! run 0   [chunk][chunk]...  \
//! run 1   [chunk]...          >-- many --> chunks in order, rule applied
//! run 2   (spilled)(spilled) /
//! ```
//!
//! Invariant: the output is sorted and the rule holds over all of it, not only within a chunk.

mod many;
mod run;
mod sorted;

pub(crate) use many::Merger;
pub(crate) use run::{ChunkSource, Run};
pub use sorted::OrderCheck;
pub(crate) use sorted::SortedInput;
