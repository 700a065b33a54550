//! Early removal of rows outside the first `rows` of a sorted output, before they are sorted.
//!
//! ```text
//! batch --order as bytes--> those not above the worst of the best so far --> pushed
//!                           |
//!                           heap of the best rows of this thread, by their order alone
//! ```
//! Once a thread has seen `rows` rows, a row after the worst of the best cannot be part of the
//! output. Rows equal to the worst stay, since their positions decide between them. The filter only
//! saves work: if the heap exceeds [`MOST_BYTES`], nothing is removed here, and the output is
//! limited all the same.

use std::collections::BinaryHeap;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use windrow::{Layout, Order, RowEncoder, Rows};

use crate::error::{Result, failed};

/// Maximum bytes of a thread's heap.
pub(super) const MOST_BYTES: usize = 4 << 20;
/// Bytes of a heap entry beside its order.
const PLACE: usize = 40;

/// The orders of the best rows seen by a thread.
pub(super) struct Best {
    columns: Vec<usize>,
    encoder: RowEncoder,
    orders: Rows,
    /// `None` after the heap exceeded its limit.
    heap: Option<BinaryHeap<Box<[u8]>>>,
    rows: usize,
    bytes: usize,
}

impl Best {
    /// Makes a filter for the first `rows` rows of `layout`.
    pub(super) fn new(layout: &Layout, rows: u64) -> Result<Self> {
        let columns: Vec<usize> = layout.key().collect();
        let schema = layout.schema().project(&columns).map_err(failed)?;
        let order = Order::by(layout.order().to_vec()).bind(&schema)?;
        Ok(Self {
            columns,
            encoder: RowEncoder::new(&order),
            orders: Rows::default(),
            heap: Some(BinaryHeap::new()),
            rows: usize::try_from(rows).unwrap_or(usize::MAX),
            bytes: 0,
        })
    }

    /// Returns the rows of `batch` that can be among the first `rows`.
    pub(super) fn keep(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some(heap) = &mut self.heap else { return Ok(batch.clone()) };
        let ordered = batch.project(&self.columns).map_err(failed)?;
        self.encoder.encode_into(&ordered, &mut self.orders)?;
        let mut kept = vec![true; batch.num_rows()];
        for (row, kept) in self.orders.iter().zip(&mut kept) {
            if heap.len() < self.rows {
                self.bytes += row.len() + PLACE;
            } else {
                match heap.peek() {
                    Some(worst) if row < &**worst => {
                        self.bytes = self.bytes + row.len() - worst.len();
                        heap.pop();
                    }
                    worst => {
                        *kept = worst.is_some_and(|worst| row == &**worst);
                        continue;
                    }
                }
            }
            heap.push(row.into());
            if self.bytes > MOST_BYTES {
                self.heap = None;
                return Ok(batch.clone());
            }
        }
        match kept.iter().all(|kept| *kept) {
            true => Ok(batch.clone()),
            false => filter_record_batch(batch, &BooleanArray::from(kept)).map_err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array};
    use windrow::{asc, desc};

    use super::*;

    fn kept(column: windrow::SortColumn, rows: u64, batches: &[&[i64]]) -> Vec<i64> {
        let batch = |values: &&[i64]| {
            let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
            RecordBatch::try_from_iter([("a", values)]).unwrap()
        };
        let schema = batch(&batches[0]).schema();
        let layout = Order::by([column]).bind(&schema).unwrap();
        let mut best = Best::new(&layout, rows).unwrap();
        let kept = batches.iter().flat_map(|values| {
            let kept = best.keep(&batch(values)).unwrap();
            kept.column(0).as_primitive::<Int64Type>().values().to_vec()
        });
        kept.collect()
    }

    #[test]
    fn what_cannot_win_is_dropped() {
        let batches: [&[i64]; 3] = [&[5, 3, 9], &[7, 3, 1], &[2, 5, 3, 3]];
        assert_eq!(kept(asc("a"), 2, &batches), [5, 3, 3, 1, 2]);
        assert_eq!(kept(desc("a"), 2, &batches), [5, 3, 9, 7]);
        assert_eq!(kept(asc("a"), 100, &batches).len(), 10);
        assert_eq!(kept(asc("a"), 0, &batches), [0; 0]);
    }

    #[test]
    fn ties_with_the_worst_stay() {
        assert_eq!(kept(asc("a"), 1, &[&[1, 1], &[1, 2]]), [1, 1, 1]);
    }
}
