//! Small record batches, concatenated before encoding.
//!
//! ```text
//! push  [16 rows] [16 rows] [16 rows] ...  -->  [ some thousand rows ]  --> encoder
//! ```
//!
//! Resolving the columns of a record batch takes as long as encoding hundreds of rows; copying its
//! rows costs hardly anything. Only plain columns without nulls wait here, so invalid values are
//! refused at once.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;

use windrow_rows::{Layout, Result};

/// Longer record batches are encoded at once.
const MOST_ROWS: usize = 512;
/// Rows encoded together: their columns stay in the second-level cache.
const ROWS: usize = 4096;
/// Most bytes held by all waiting columns. The budget does not count these bytes.
const BYTES: usize = 256 << 10;

/// Waiting record batches, consecutive in the input.
#[derive(Debug, Default)]
pub(super) struct Pending {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// Position of the first row in the input.
    sequence: u64,
}

impl Pending {
    /// Takes `batch`, whose first row has position `sequence`, if concatenation pays and there is
    /// capacity. Returns true if the batch was taken.
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

    /// Returns all waiting rows as one record batch, and the position of the first row.
    ///
    /// # Errors
    /// [`crate::Error::Arrow`], if the batches cannot be concatenated.
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

/// Returns true if copying a column of this type is only copying its bytes.
fn plain(data_type: &DataType) -> bool {
    use DataType::{Binary, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8};
    data_type.is_primitive()
        || matches!(data_type, Utf8 | LargeUtf8 | Binary | LargeBinary | FixedSizeBinary(_))
}
