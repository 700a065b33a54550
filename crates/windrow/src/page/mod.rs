//! Pages: record batches as bytes that go over a wire, and back.
//!
//! ```text
//!  Partitioned --partition(p)--> RecordBatch --write--> | page | page | ...   --read--> RecordBatch
//!                                             |
//!                                      bytes: never fewer than the page will have
//! ```
//!
//! Each format is a feature of the crate: `presto`, the format of Presto and Velox exchanges, and
//! `ipc`, Arrow's own streams. `docs/page-format.md` draws the bytes.
//!
//! Invariant: what is read is what was written, or an error; damaged bytes neither panic nor take
//! more memory than the reader was allowed.

#[cfg(feature = "ipc")]
mod ipc;
#[cfg(feature = "presto")]
mod presto;

#[cfg(feature = "ipc")]
pub use ipc::IpcPages;
#[cfg(feature = "presto")]
pub use presto::PrestoPages;

/// Compression of pages. The reader of Presto pages has to know it; Arrow pages tell it.
#[cfg(any(feature = "ipc", feature = "presto"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCodec {
    /// Bytes as they are.
    #[default]
    None,
    /// LZ4: blocks in Presto pages, frames in Arrow pages.
    Lz4,
    /// Zstandard, level 1.
    Zstd,
}

/// Bytes that a reader takes for a page unless told otherwise.
#[cfg(any(feature = "ipc", feature = "presto"))]
const MOST_BYTES: usize = 1 << 30;

/// The error of a page that is not what was written.
#[cfg(any(feature = "ipc", feature = "presto"))]
fn damaged(place: &str, message: impl Into<String>) -> crate::error::Error {
    crate::error::Error::Corrupt { place: place.to_owned(), message: message.into() }
}
