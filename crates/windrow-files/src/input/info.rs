//! What is said of an input before it is read.

use std::path::Path;
use std::sync::Arc;

use crate::format::Format;

use super::Source;

/// A column of a declared order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeclaredColumn {
    /// The column; a dotted path where it is nested.
    pub name: String,
    /// Largest first.
    pub descending: bool,
    /// Nulls before all values.
    pub nulls_first: bool,
}

/// What is known of an input before it is read.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// What messages call it: its path, or `stdin`.
    pub name: Arc<str>,
    /// Its format, told by its content where the extension is of either Arrow format.
    pub format: Format,
    /// Its length; unknown for a stream.
    pub bytes: Option<u64>,
    /// Its rows; unknown for text and streams.
    pub rows: Option<u64>,
    pub(super) source: Source,
}

impl FileInfo {
    /// Its path, if it is a file.
    pub fn path(&self) -> Option<&Path> {
        self.source.path()
    }
}
