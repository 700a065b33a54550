//! Rows that go to every partition: those with a null in the key, and the first row.
//!
//! ```text
//! rows  a b - d    ids  1 0 2 1    3 partitions
//!       ^   ^ to every partition
//! rows  a a a b - - - d    ids  0 1 2 0 0 1 2 1
//! ```
//!
//! Invariant: the rows of a partition keep their order, and none of them is there twice.

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::nested::select;
use windrow_rows::{Layout, Result};

/// Finds rows that go to every partition.
#[derive(Clone, Debug)]
pub(super) struct Replicate {
    layout: Layout,
    /// True until the first row was found.
    wants_any: bool,
}

impl Replicate {
    pub(super) fn new(layout: &Layout) -> Self {
        Self { layout: layout.clone(), wants_any: true }
    }

    /// Returns a bit for each row of `batch`, or `None` if no row goes to every partition.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Option<BooleanBuffer> {
        let nulls = self.layout.key().map(|column| batch.column(column).logical_nulls());
        let nulls = nulls.fold(None, |all, more| NullBuffer::union(all.as_ref(), more.as_ref()));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let rows = batch.num_rows();
        let has_first = self.wants_any;
        self.wants_any &= rows == 0;
        let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (rows > 0 && (has_first || nulls.is_some())).then(|| {
            BooleanBuffer::collect_bool(rows, |row| (row == 0 && has_first) || is_null(row))
        })
    }
}

/// Repeats the rows of `batch` that go to all of `partitions` partitions. Returns the rows and the
/// partition of each.
///
/// # Errors
/// [`windrow_rows::Error::Arrow`] if strings become too long for their offsets.
pub(super) fn replicated(
    batch: &RecordBatch,
    ids: &[u32],
    all: &BooleanBuffer,
    partitions: usize,
) -> Result<(RecordBatch, Vec<u32>)> {
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for ((row, &id), goes_to_all) in (0u64..).zip(ids).zip(all) {
        let to = if goes_to_all { 0..partitions as u32 } else { id..id + 1 };
        rows.extend(std::iter::repeat_n(row, to.len()));
        targets.extend(to);
    }
    let columns = batch.columns().iter().map(|column| select(column, &rows));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let columns = columns.collect::<Result<_>>()?;
    Ok((RecordBatch::try_new_with_options(batch.schema(), columns, &options)?, targets))
}
