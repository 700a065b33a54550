//! Small record batches, put together before they are encoded.
//!
//! ```text
//! push  [16 rows] [16 rows] [16 rows] ...  -->  [ some thousand rows ]  --> encoder
//! ```
//!
//! To resolve the columns of a record batch takes as long as to encode hundreds of rows, to copy them
//! hardly anything. Only plain columns without nulls wait here: whatever could be refused is refused
//! when it is pushed.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;

use crate::error::Result;
use crate::order::Layout;

/// Longer record batches do not wait.
const MOST_ROWS: usize = 512;
/// Rows that are encoded at once: their columns stay in the second-level cache.
const ROWS: usize = 4096;
/// Bytes that all columns together hold on to at the most; these are outside of the budget.
const BYTES: usize = 256 << 10;

/// Record batches that wait, one behind the other in the input.
#[derive(Debug, Default)]
pub(super) struct Pending {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// The place in the input of the first row.
    sequence: u64,
}

impl Pending {
    /// Takes `batch` in, whose first row has place `sequence`, if that is worth while and there is room.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`].
    pub(super) fn offer(
        &mut self,
        layout: &Layout,
        batch: &RecordBatch,
        sequence: u64,
    ) -> Result<bool> {
        let rows = batch.num_rows();
        if !(1..=MOST_ROWS).contains(&rows)
            || self.rows + rows > ROWS
            || (self.rows > 0 && self.sequence + self.rows as u64 != sequence)
        {
            return Ok(false);
        }
        let same = |last: &RecordBatch| Arc::ptr_eq(last.schema_ref(), batch.schema_ref());
        if !self.batches.last().is_some_and(same) {
            layout.check_schema(batch.schema_ref())?;
        }
        let mut bytes = self.bytes;
        for column in batch.columns() {
            if column.null_count() > 0 || !plain(column.data_type()) {
                return Ok(false);
            }
            bytes += column.get_buffer_memory_size();
        }
        if bytes > BYTES {
            return Ok(false);
        }
        if self.rows == 0 {
            self.sequence = sequence;
        }
        (self.rows, self.bytes) = (self.rows + rows, bytes);
        self.batches.push(batch.clone());
        Ok(true)
    }

    /// All that waits as one record batch, and the place of its first row.
    ///
    /// # Errors
    /// [`crate::Error::Arrow`], if they do not go together.
    pub(super) fn take(&mut self) -> Result<Option<(RecordBatch, u64)>> {
        let batches = std::mem::take(&mut self.batches);
        (self.rows, self.bytes) = (0, 0);
        let whole = match &batches[..] {
            [] => return Ok(None),
            [batch] => batch.clone(),
            [first, ..] => concat_batches(first.schema_ref(), &batches)?,
        };
        Ok(Some((whole, self.sequence)))
    }
}

/// True if copying a column of this type is no more than copying its bytes.
fn plain(data_type: &DataType) -> bool {
    use DataType::{Binary, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8};
    data_type.is_primitive()
        || matches!(data_type, Utf8 | LargeUtf8 | Binary | LargeBinary | FixedSizeBinary(_))
}
