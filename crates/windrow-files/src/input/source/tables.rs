//! Recognition of directories that are tables: a log beside the files defines which files and rows
//! are valid.
//!
//! Such directories are refused as inputs, since reading all their files would return deleted and
//! replaced rows. A pattern reads the files without the log.

use std::ffi::OsStr;
use std::path::Path;

use crate::error::{Error, Result};

/// A table format with a log beside its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Delta,
    Hudi,
    Iceberg,
}

impl Table {
    /// Returns the format of a directory's table, by the directory's entry `entry`. `metadata` is
    /// Iceberg's only if `has_versions` returns true.
    pub(super) fn of_entry(entry: &[u8], has_versions: impl FnOnce() -> bool) -> Option<Self> {
        match entry {
            b"_delta_log" => Some(Self::Delta),
            b".hoodie" => Some(Self::Hudi),
            b"metadata" if has_versions() => Some(Self::Iceberg),
            _ => None,
        }
    }

    /// Returns the error for `directory`.
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

/// Returns true for the names of an Iceberg table's metadata versions.
pub(super) fn is_version(name: &[u8]) -> bool {
    name.ends_with(b".metadata.json") || name == b"version-hint.text"
}

/// Returns true for the names of files and directories without data in a data set (`_SUCCESS`,
/// `_temporary`, `.part.crc`). A directory `_c0=1` is a column.
pub(super) fn is_marked(name: &OsStr) -> bool {
    match name.as_encoded_bytes() {
        [b'.', ..] => true,
        name @ [b'_', ..] => !name.contains(&b'='),
        _ => false,
    }
}
