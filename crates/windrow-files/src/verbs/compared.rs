//! Which columns a verb compares: those whose values it has to know, and not just to write.
//!
//! Columns of a log count among them where its format says so (see
//! [`carried_as_text`](crate::ReadOptions::carried_as_text)); what is said of rows that count, the inputs know.

use windrow::SortColumn as Column;

use super::{CompactSpec, DedupeSpec, HeadSpec, MergeSpec, PartitionSpec, SortSpec};

fn names<'a>(columns: impl IntoIterator<Item = &'a Column>) -> Vec<String> {
    columns.into_iter().map(|column| column.name.clone()).collect()
}

impl SortSpec {
    /// The columns whose values count: those of the order.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(names(&self.by))
    }
}

impl HeadSpec {
    /// The columns whose values count: none.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }
}

impl MergeSpec {
    /// The columns whose values count: those of the order; all where the diffs of equal rows are summed.
    pub fn compared(&self) -> Option<Vec<String>> {
        self.diff.is_none().then(|| names(&self.by))
    }
}

impl DedupeSpec {
    /// The columns whose values count: those of the key; all where whole rows are compared.
    pub fn compared(&self) -> Option<Vec<String>> {
        self.key.as_ref().map(names)
    }
}

impl PartitionSpec {
    /// The columns whose values count: those that decide where a row goes, and what files are sorted by.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(names(self.by.iter().chain(&self.sort)))
    }
}

impl CompactSpec {
    /// The columns whose values count: those of the key and the order, and the operation, beside what the format of
    /// the log has; all where the diffs of equal rows are summed.
    pub fn compared(&self) -> Option<Vec<String>> {
        if self.diff.is_some() {
            return None;
        }
        let mut columns = names(self.key.iter().chain(&self.order_by));
        columns.extend(self.op_column.iter().chain(&self.time).cloned());
        Some(columns)
    }
}
