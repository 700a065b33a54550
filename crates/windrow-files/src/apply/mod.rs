//! Changes applied to a table of sorted Parquet files: only row groups with a changed key are
//! written anew.
//!
//! ```text
//!  changes --compact--> last change of each key, sorted       Changes
//!  table   --footers--> keys of files and row groups          Extents
//!                 both --> changes of each file               FilePlan
//!   each file, on any thread:  look for a change that changes something
//!                              copy row groups, or merge them with their changes     Rewriting
//!  new files, figures                                         Applied
//! ```
//! A table that can hide rows may instead keep its files: the positions of changed keys are found by
//! reading key columns alone, and the new rows go to new files ([`WriteMode::Vectors`], `positions`).
//!
//! The core takes a table as a list of files, writes new files into a directory, and returns the
//! files that were removed and added. A plain directory then exchanges its content as a whole
//! ([`crate::output`]).
//!
//! Semantics. The last change of a key counts, as in [`CompactSpec`]. If the table has the columns of
//! `order_by`, a change that is older than its row loses; otherwise every change wins. A row that is
//! equal to its change is not a change. A table has one row of a key: two rows of a changed key are
//! an error.
//!
//! Costs. A file or row group whose bounds have no changed key is not read. Files and row groups with
//! overlapping bounds, or without any, have their key columns read; if files overlap, the changes
//! take 4 bytes each in memory. A file that is not sorted by the key is sorted as a whole.

mod changes;
mod directory;
mod extents;
mod figures;
mod find;
mod hidden;
mod homes;
mod keys;
mod merge;
mod outputs;
mod partitions;
mod plan;
mod positions;
mod prepared;
mod rewrite;
mod segment;
mod table;
mod transform;

pub use directory::{Apply, ApplySpec, ListedFile};
pub use figures::{AddedFile, Applied, ColumnFigures, Counts, HiddenRows, WriteMode};
pub use transform::{PartitionColumn, PartitionTransform};
