//! Columns with values that a verb interprets. The remaining columns are only copied.
//!
//! The columns of a change log's format count too, if the format requires it (see
//! [`carried_as_text`](crate::ReadOptions::carried_as_text)). The inputs know the columns of their
//! own filter.

use super::{CompactSpec, DedupeSpec, HeadSpec, MergeSpec, PartitionSpec, SortSpec};
use crate::columns::names;

impl SortSpec {
    /// Returns the interpreted columns: the order.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(names(&self.by))
    }
}

impl HeadSpec {
    /// Returns the interpreted columns: none.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }
}

impl MergeSpec {
    /// Returns the interpreted columns: the order. `None` means all columns, if diffs of equal rows
    /// are summed.
    pub fn compared(&self) -> Option<Vec<String>> {
        self.diff.is_none().then(|| names(&self.by))
    }
}

impl DedupeSpec {
    /// Returns the interpreted columns: the key. `None` means all columns, if whole rows are
    /// compared.
    pub fn compared(&self) -> Option<Vec<String>> {
        self.key.as_ref().map(names)
    }
}

impl PartitionSpec {
    /// Returns the interpreted columns: the columns of the partition and of the files' order.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(names(self.by.iter().chain(&self.sort)))
    }
}

impl CompactSpec {
    /// Returns the interpreted columns: key, order and operation, beside the columns of the log's
    /// format. `None` means all columns, if diffs of equal rows are summed.
    pub fn compared(&self) -> Option<Vec<String>> {
        if self.diff.is_some() {
            return None;
        }
        let mut columns = names(self.key.iter().chain(&self.order_by));
        columns.extend(self.op_column.iter().chain(&self.time).cloned());
        Some(columns)
    }
}
