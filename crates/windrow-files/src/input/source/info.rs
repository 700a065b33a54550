//! Facts about an input, known before reading.

use std::path::Path;
use std::sync::Arc;

use crate::settings::Format;

use super::expand::Source;

/// A column of a declared order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeclaredColumn {
    /// Path of the column; dotted for a nested column.
    pub name: String,
    /// Whether the order is descending.
    pub descending: bool,
    /// Whether nulls precede all values.
    pub nulls_first: bool,
}

/// Facts about an input, known before reading.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// Name in messages: the path, or `stdin`.
    pub name: Arc<str>,
    /// Format; for the extensions of Arrow IPC determined by the content.
    pub format: Format,
    /// Length; unknown for a stream.
    pub bytes: Option<u64>,
    /// Number of rows; unknown for text and streams.
    pub rows: Option<u64>,
    pub(crate) source: Source,
}

impl FileInfo {
    /// Returns the path of a file.
    pub fn path(&self) -> Option<&Path> {
        self.source.path()
    }
}
