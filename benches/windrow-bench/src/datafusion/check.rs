//! Checks of query results: a checksum to compare two runs, and the order of rows.

use arrow::array::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};

use crate::Result;

/// An order-independent checksum of all rows, and a check of ascending order.
#[derive(Default)]
pub(crate) struct Check {
    pub(crate) sum: u64,
    before: Option<OwnedRow>,
}

impl Check {
    /// Adds `batch`, whose first `key` columns must ascend.
    pub(crate) fn add(&mut self, batch: &RecordBatch, key: usize) -> Result<()> {
        let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
        let fields = |columns: &[_]| -> Vec<SortField> {
            columns
                .iter()
                .map(|column: &arrow::array::ArrayRef| SortField::new(column.data_type().clone()))
                .collect()
        };
        let rows = RowConverter::new(fields(batch.columns()))?.convert_columns(batch.columns())?;
        for row in &rows {
            self.sum = self.sum.wrapping_add(hasher.hash_one(row.as_ref()));
        }
        if key == 0 {
            return Ok(());
        }
        let columns = &batch.columns()[..key];
        let keys = RowConverter::new(fields(columns))?.convert_columns(columns)?;
        for row in &keys {
            let ascends =
                self.before.as_ref().is_none_or(|before| before.row().as_ref() <= row.as_ref());
            if !ascends {
                return Err("rows are out of order".into());
            }
            self.before = Some(row.owned());
        }
        Ok(())
    }
}
