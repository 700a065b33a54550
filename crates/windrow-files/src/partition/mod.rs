//! Partitioning: assigns rows to files, and names the files.
//!
//! ```text
//!  hash, ranges   batch --Ids--> batch + partition number     order: number, --sort    part-00007.parquet
//!  hive           batch -------> batch                        order: `by`, --sort      country=nl/part-0.parquet
//!                                                                    |
//!                                              [rows of one file][rows of the next]...   cut where the first
//!                                                                                        columns change
//! ```
//!
//! Rows are sorted by partition, stably, as in any verb: inside the memory limit, on all threads.
//! The files are then written one after the other, in order, so that the number and the sizes of
//! files do not matter.
//!
//! Invariant: rows of one partition are neighbours in the sorted output, and file names ascend with
//! the rows.

mod ids;
mod names;
mod sample;

pub(crate) use ids::Ids;
pub(crate) use names::{Name, Names, numbered, text};
pub(crate) use sample::Sample;

use std::fmt;
use std::sync::Arc;

use windrow::SortColumn as Column;

/// Rule for dividing sorted rows into files.
pub(crate) struct Partitioning {
    /// Columns of the layout's schema that distinguish partitions: the first columns of the order.
    pub(crate) keys: Vec<usize>,
    pub(crate) names: Names,
    /// Source of the numbers, for numbered partitions.
    pub(crate) ids: Option<Arc<Ids>>,
    /// Columns by which every file is sorted.
    pub(crate) sorting: Vec<Column>,
    /// Description of the rule.
    pub(crate) how: String,
}

impl fmt::Display for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.how)
    }
}
