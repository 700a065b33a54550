//! Partitioning: which file a row goes to, and what that file is called.
//!
//! ```text
//!  hash, ranges   batch --Ids--> batch + partition number     order: number, --sort    part-00007.parquet
//!  hive           batch -------> batch                        order: `by`, --sort      country=nl/part-0.parquet
//!                                                                    |
//!                                              [rows of one file][rows of the next]...   cut where the first
//!                                                                                        columns change
//! ```
//!
//! Rows are sorted by what tells partitions apart, stably, as any verb sorts: inside the memory limit,
//! on all threads. The files then follow from one another and are written one at a time, so that
//! neither their number nor their sizes matter.
//!
//! Invariant: rows of one partition are neighbours in the sorted output, and names ascend with them.

mod ids;
mod names;
mod sample;

pub(crate) use ids::Ids;
pub(crate) use names::{Name, Names, hive_values, numbered};
pub(crate) use sample::Sample;

use std::fmt;
use std::sync::Arc;

use windrow::SortColumn as Column;

/// How the sorted rows become files.
pub(crate) struct Partitioning {
    /// Columns of the layout's schema that tell partitions apart; the order starts with them.
    pub(crate) keys: Vec<usize>,
    pub(crate) names: Names,
    /// Where partitions have numbers: what gives them.
    pub(crate) ids: Option<Arc<Ids>>,
    /// What every file is sorted by.
    pub(crate) sorting: Vec<Column>,
    /// The rule in words.
    pub(crate) how: String,
}

impl fmt::Display for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.how)
    }
}
