//! Verbs: specifications by names, and their binding to the schema of inputs.
//!
//! ```text
//! SortSpec, DedupeSpec, ... --bind to Inputs--> Arrangement [and Partitioning]
//! ```
//!
//! A specification is plain data and looks nothing up. An [`Arrangement`] is right by construction.

mod arrangement;
mod changes;
mod check;
mod compact;
mod dedupe;
mod diff;
mod known;
mod merge;
mod onto;
mod partition;
mod project;
mod sift;
mod sort;

pub(crate) use arrangement::{
    Arrangement, FirstRow, Preparation, Transform, Verify, Way, sort_columns,
};
pub(crate) use check::first_out_of_order;
pub use check::{CheckSpec, Checked, check};
pub use compact::CompactSpec;
pub use dedupe::DedupeSpec;
pub use diff::DiffSpec;
pub use merge::MergeSpec;
pub(crate) use onto::Onto;
pub use partition::{PartitionSpec, Partitions};
pub(crate) use sift::Sift;
pub use sort::{HeadSpec, SortSpec};
