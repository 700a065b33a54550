//! Chunks: sorted rows, the unit of merging, spilling and transfer.
//!
//! ```text
//! record batches --> chunker --staged, ordered--> builder --> output --> chunks     (resident)
//! rows in order  ---------------------------------^  rule       cut        |
//!                                                               pages: in memory or stored
//! ```
//!
//! Invariants: a chunk has at least one row. Its rows ascend strictly under the layout, tails
//! ignored. Under the rules of one row per key, no two rows share a key; under `last_known`, a key
//! has only the rows that fold into its final row. No row has diffs that are all zero. A chunk
//! holds at most the pool's chunk size, or one row.

mod arrange;
mod block;
mod builder;
mod chunker;
mod elided;
mod filter;
mod kept;
mod known;
mod lanes;
mod listed;
mod merging;
mod output;
mod page;
mod parts;
mod pending;
mod resident;
mod search;
mod sought;
mod staged;
#[cfg(test)]
pub(crate) mod tests;
mod times;
mod view;
mod wraps;

pub(crate) use arrange::{Arranger, Place};
pub use builder::Finish;
pub(crate) use builder::{Builder, Findings};
pub(crate) use chunker::{Chunker, Failure, Runs};
pub(crate) use filter::{Filter, KeyHash};
pub(crate) use kept::Kept;
pub(crate) use output::FEW_SMALL;
pub(crate) use page::{Found, Page};
pub(crate) use parts::PartRows;
pub(crate) use resident::{Chunk, OFFSET_BYTES};
pub(crate) use search::{bisect, gallop};
pub(crate) use sought::{Sought, begins, between, word_at};
pub(crate) use times::{TimeCodes, body_of, end_width, time_of, time_width};
pub(crate) use view::{Starts, View};
pub(crate) use wraps::{Wraps, describe};
