//! Merging: sorted runs of chunks into one.
//!
//! ```text
//! run 0   [chunk][chunk]...  \
//! run 1   [chunk]...          >-- merger --> chunks
//! run 2   (spilled)(spilled) /
//! ```
//!
//! The first matching strategy merges the runs:
//!
//! ```text
//! no overlap                              chained: chunks in sequence, none is read  Run::chain
//! two of one chunk, one together          the two-way kernel, without a merger       small
//! one left                                its chunks, unchanged                      merger::pass
//! two, one chunk before the other         unchanged                                  merger::pass
//! two, a chunk between rows of the other  earlier rows copied, the chunk unchanged   merger::two
//! two, most rules                         kernel::merge::merge, chunk by chunk       merger::two
//! up to 64, most rules                    kernel::merge::Several, block by block     many
//! more, or rules that pick a row          block sorted like a chunk, then gathered   many
//! ```
//!
//! Several threads merge share by share (`shares`), each share as above. Sorted record batches are also
//! merged without rows: only keys are encoded, and columns are gathered (`columnar`).
//!
//! Invariant: the output is sorted, and the rule holds over all of it, not only within a chunk.

mod advance;
mod chunks;
mod columnar;
mod extract;
mod fences;
mod many;
mod merger;
mod newest;
mod ranges;
mod retain;
mod run;
mod samples;
mod shares;
mod small;
mod sorted;
mod source;
mod window;

pub(crate) use advance::Advance;
pub(crate) use chunks::ChunkSource;
pub use columnar::{ColumnarMerge, KeyedBatch, KeyedBatches, KeyedRun, Picks};
pub(crate) use extract::{Extract, KeptRun};
pub(crate) use fences::{FencedRun, Fences};
pub(crate) use merger::Merger;
pub(crate) use ranges::merge_ranges;
pub use retain::Retain;
pub(crate) use run::Run;
pub(crate) use shares::Shares;
pub(crate) use small::merged_small;
pub use sorted::OrderCheck;
pub(crate) use sorted::SortedInput;
pub(crate) use source::Source;
