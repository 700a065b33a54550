//! Pages: record batches as bytes on a wire.
//!
//! ```text
//!  Partitioned --partition(p)--> RecordBatch --write--> | page | page | ...  --read--> RecordBatch
//!                                             |
//!                                      bytes: at least the size of the page
//! ```
//!
//! [`PartitionPages`] gathers rows of many record batches, and writes pages of each partition.
//!
//! Each format is a feature of the crate: `presto`, the format of Presto and Velox exchanges, and
//! `ipc`, Arrow's own streams. `docs/page-format.md` draws the bytes.
//!
//! Both sides have the schema. A written record batch must have the columns of the schema, by name
//! and type; metadata may differ. A record batch that was read has the reader's schema.
//!
//! Invariant: the reader returns the written record batch, or an error. Damaged bytes neither cause
//! a panic nor take more memory than the reader allows.

mod common;
#[cfg(feature = "ipc")]
mod ipc;
mod partition_pages;
#[cfg(feature = "presto")]
mod presto;

pub use common::PageCodec;
#[cfg(feature = "ipc")]
pub use ipc::IpcPages;
pub use partition_pages::{PageFormat, PartitionPages};
#[cfg(feature = "presto")]
pub use presto::PrestoPages;
