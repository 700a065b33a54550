//! Record batches that are held in memory, each sorted by its keys, for a [`ColumnarMerge`] of all of
//! them.
//!
//! ```text
//! read    b a b | a b a          sorted    a b b | a a b          merged    a a a b b b
//! ```
//! This serves rows that are grouped by few keys: a merge takes long ranges of each record batch.

use std::iter::once;

use arrow_array::RecordBatch;
use arrow_select::take::take_record_batch;

use super::columnar::{ColumnarMerge, KeyedBatch, KeyedBatches, Lengths};
use windrow_rows::engine::Encoder;
use windrow_rows::{Argsorter, Error, Layout, Result, RowEncoder};

/// Sorts record batches by the keys of a layout, one at a time. Equal keys keep their order.
pub struct KeySorter {
    layout: Layout,
    order: Argsorter,
    keys: RowEncoder,
    lengths: Encoder,
}

impl KeySorter {
    /// Sorts by the keys of `layout`, which [`ColumnarMerge::serves`].
    pub fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            order: Argsorter::default(),
            keys: RowEncoder::of_keys(layout),
            lengths: Encoder::new(layout),
        }
    }

    /// Sorts `batch`.
    ///
    /// # Errors
    /// As [`argsort`](crate::argsort).
    pub fn sort(&mut self, batch: &RecordBatch) -> Result<KeyedBatch> {
        let order = self.order.sort(&self.layout, batch)?;
        let batch = take_record_batch(batch, &order)?;
        let lengths = Lengths::of(&self.lengths.prepare(&batch, 0)?);
        let columns: Vec<usize> = self.layout.key().collect();
        let keys = self.keys.encode(&batch.project(&columns)?)?;
        match (1..keys.len()).find(|&row| keys.row(row - 1) > keys.row(row)) {
            None => Ok(KeyedBatch { batch, keys, lengths }),
            Some(row) => Err(Error::OutOfOrder { input: 0, row: row as u64 }),
        }
    }
}

impl ColumnarMerge {
    /// Merges `batches`. Of equal keys, rows of earlier record batches come first.
    pub fn of_batches(layout: &Layout, batches: impl IntoIterator<Item = KeyedBatch>) -> Self {
        let run = |batch| Box::new(once(Ok(batch))) as KeyedBatches;
        Self::new(layout, batches.into_iter().map(run))
    }
}

impl KeyedBatch {
    /// Returns the bytes in memory.
    pub fn bytes(&self) -> usize {
        let lengths = match &self.lengths {
            Lengths::Same(_) => 0,
            Lengths::Ends(ends) => size_of_val(&**ends),
        };
        self.batch.get_array_memory_size()
            + self.keys.bytes().len()
            + self.keys.len() * size_of::<usize>()
            + lengths
    }
}
