//! Merging: runs of chunks, each sorted, into one.
//!
//! ```text
//! run 0   [chunk][chunk]...  \               one run left: its chunks as they are
//! run 1   [chunk]...          >-- merger --> two: kernel::merge                 --> chunks
//! run 2   (spilled)(spilled) /               more: many, in blocks; kernel::merge::several
//! ```
//!
//! Invariant: the output is sorted and the rule holds over all of it, not only within a chunk.

mod advance;
mod extract;
mod many;
mod merger;
mod pieces;
mod ranges;
mod run;
mod sorted;
mod source;
mod window;

pub(crate) use advance::Advance;
pub(crate) use extract::Extract;
pub(crate) use merger::Merger;
pub(crate) use ranges::merge_ranges;
pub(crate) use run::{ChunkSource, Run};
pub use sorted::OrderCheck;
pub(crate) use sorted::SortedInput;
pub(crate) use source::Source;
