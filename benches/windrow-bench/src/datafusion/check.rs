//! Checks of query results: a checksum to compare two runs, and the order of rows.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::row::{OwnedRow, RowConverter, SortField};

use crate::Result;

/// An order-independent checksum of all rows, and a check of ascending order.
#[derive(Default)]
pub(super) struct Check {
    pub(super) sum: u64,
    before: Option<OwnedRow>,
}

impl Check {
    /// Adds `batch`, whose first `key` columns must ascend.
    pub(super) fn add(&mut self, batch: &RecordBatch, key: usize) -> Result<()> {
        let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
        let rows = |columns: &[ArrayRef]| {
            let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
            RowConverter::new(fields.collect())?.convert_columns(columns)
        };
        for row in &rows(batch.columns())? {
            self.sum = self.sum.wrapping_add(hasher.hash_one(row.as_ref()));
        }
        if key == 0 {
            return Ok(());
        }
        for row in &rows(&batch.columns()[..key])? {
            if self.before.as_ref().is_some_and(|before| before.row() > row) {
                return Err("rows are out of order".into());
            }
            self.before = Some(row.owned());
        }
        Ok(())
    }
}
