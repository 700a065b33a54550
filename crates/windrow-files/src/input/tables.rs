//! Directories that are tables: a log beside the files says which of them count, and which of their rows.
//!
//! Read as files alone they would give back rows that were deleted or replaced, so that they are refused as directories. A
//! pattern takes the files as they are.

use std::ffi::OsStr;
use std::path::Path;

use crate::error::{Error, Result};

/// What keeps a log beside its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Delta,
    Hudi,
    Iceberg,
}

impl Table {
    /// The table that `directory` is, if it has an entry called `entry`. Of Iceberg's `metadata` the content decides, which
    /// `has_versions` tells.
    pub(super) fn of_entry(entry: &[u8], has_versions: impl FnOnce() -> bool) -> Option<Self> {
        match entry {
            b"_delta_log" => Some(Self::Delta),
            b".hoodie" => Some(Self::Hudi),
            b"metadata" if has_versions() => Some(Self::Iceberg),
            _ => None,
        }
    }

    /// Why `directory` is refused.
    pub(super) fn refused<T>(self, directory: &Path) -> Result<T> {
        let (name, reader) = match self {
            Self::Delta => ("a Delta table", "delta-rs"),
            Self::Hudi => ("a Hudi table", "hudi-rs or Spark"),
            Self::Iceberg => ("an Iceberg table", "pyiceberg"),
        };
        let shown = directory.display();
        Err(Error::usage(format!(
            "{shown} is {name}: some of its files, or of their rows, are no longer part of it; read the table with {reader}, \
             whose record batches the Python package takes, or name the files by a pattern such as '{shown}/**/*.parquet' \
             to have them as they are"
        )))
    }
}

/// Whether a file is called as the versions of an Iceberg table's metadata are.
pub(super) fn is_version(name: &[u8]) -> bool {
    name.ends_with(b".metadata.json") || name == b"version-hint.text"
}

/// Whether writers of data sets mark by this name what is not data (`_SUCCESS`, `_temporary`, `.part.crc`). A directory `_c0=1` is
/// a column.
pub(super) fn is_marked(name: &OsStr) -> bool {
    match name.as_encoded_bytes() {
        [b'.', ..] => true,
        name @ [b'_', ..] => !name.contains(&b'='),
        _ => false,
    }
}
