//! Sorting of a record batch: computes the permutation that sorts it.
//!
//! ```text
//! encode the columns of the order as rows: bytes that compare in the order         (RowEncoder)
//! while a group of rows is open, at first all rows:
//! 1. few rows, or a run: sorted by comparisons
//! 2. pack   word = | first bits in which the rows differ | position in the group |  (prefix)
//! 3. sort   the words                                                               (radix)
//! 4. ties   rows with equal bits are a group, which opens
//! ```
//!
//! Invariant: the sort is stable. The rows of an open group are in the order of the input. A word's
//! low bits are a position in the group, so that no two words are equal and any sort of words is
//! stable.

#[cfg(test)]
mod tests;

use std::slice::from_ref;

use arrow_array::{RecordBatch, UInt32Array};

use crate::error::{Error, Result};
use crate::order::Layout;
use crate::rows::{RowEncoder, Rows};
use windrow_kernel::prefetch::Ahead;
use windrow_kernel::prefix::Plan;
use windrow_kernel::radix;

/// Groups up to this size are sorted by comparisons of rows.
const SMALL: usize = 20;

/// Returns the permutation that sorts `batch` by the columns of the layout's order: entry `i` is
/// the position of the row with rank `i`. Stable: equal rows keep their order.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_rows::{Order, argsort, desc};
///
/// # let amounts: ArrayRef = Arc::new(Int64Array::from(vec![5, 9, 7]));
/// # let batch = RecordBatch::try_from_iter([("amount", amounts)])?;
/// let layout = Order::by(desc("amount")).bind(&batch.schema())?;
/// assert_eq!(argsort(&layout, &batch)?.values(), &[1, 2, 0]);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
///
/// # Cost
/// The columns of the order are encoded as rows, and one word a row is sorted by radix; rows that
/// agree in the first bits that vary, 64 without those of a position, are sorted again by the next
/// bits. O(n) if the rows are in order or in reverse, or if one word decides. Workspace: the encoded
/// rows, and up to 28 bytes a row.
///
/// # Errors
/// [`Error::SchemaMismatch`] if the record batch does not have the layout's schema;
/// [`Error::Value`] for a null where the schema has none, more than 2^32 rows, or encoded columns of
/// the order that take more than 2 GiB in a row or 4 GiB in all.
pub fn argsort(layout: &Layout, batch: &RecordBatch) -> Result<UInt32Array> {
    Argsorter::default().sort(layout, batch)
}

/// Sorts record batches like [`argsort`], one after the other, in a reused workspace.
#[derive(Debug, Default)]
pub struct Argsorter {
    rows: Rows,
    words: Words,
}

impl Argsorter {
    /// Returns the permutation that sorts `batch` by the columns of the layout's order.
    ///
    /// # Errors
    /// As [`argsort`].
    pub fn sort(&mut self, layout: &Layout, batch: &RecordBatch) -> Result<UInt32Array> {
        layout.check_schema(batch.schema_ref())?;
        let Ok(count) = u32::try_from(batch.num_rows()) else {
            return Err(Error::Value {
                column: "(row)".into(),
                message: format!("{} rows are more than 32 bits can number", batch.num_rows()),
            });
        };
        // The slots of a layout begin with those of its order.
        let slots = layout.slots().iter().take(layout.order().len());
        let columns = batch.project(&slots.map(|slot| slot.column).collect::<Vec<_>>())?;
        RowEncoder::of_order(layout).encode_into(&columns, &mut self.rows)?;
        let rows = &self.rows;
        let mut order: Vec<u32> = (0..count).collect();
        let mut open = vec![(0, order.len())];
        while let Some((start, end)) = open.pop() {
            let group = &mut order[start..end];
            let compare = |a: &u32, b: &u32| rows.compare(*a as usize, *b as usize);
            if group.len() <= SMALL {
                group.sort_by(compare);
                continue;
            }
            if group.is_sorted_by(|a, b| compare(a, b).is_le()) {
                continue;
            }
            if group.is_sorted_by(|a, b| compare(a, b).is_gt()) {
                group.reverse();
                continue;
            }
            let mut start = start;
            for tied in self.words.sort(rows, group) {
                if tied > 1 {
                    open.push((start, start + tied));
                }
                start += tied;
            }
        }
        Ok(order.into())
    }
}

/// Words of one group of rows, in reused memory.
#[derive(Debug, Default)]
struct Words {
    words: Vec<u64>,
    scratch: Vec<u64>,
}

impl Words {
    /// Sorts a group of rows, which are not all equal, by the first bits in which they differ. No
    /// row is a prefix of another, so that these bits tell some rows apart. Returns the numbers of
    /// rows with equal bits, in sequence.
    fn sort(&mut self, rows: &Rows, group: &mut [u32]) -> impl Iterator<Item = usize> {
        let Self { words, scratch } = self;
        let low = usize::BITS - (group.len() - 1).leading_zeros();
        let all = 0..group.len();
        let row = |at: usize| rows.row(group[at] as usize);
        let mut pack = |plan: &Plan| {
            words.clear();
            plan.pack(0, group.iter().map(|&at| rows.row(at as usize)), low, words)
        };
        let mut plan = Plan::sampled(from_ref(&all), row, 0, u64::BITS - low);
        if !pack(&plan) {
            plan = Plan::new(from_ref(&all), row, 0, u64::BITS - low);
            let packed = pack(&plan);
            debug_assert!(packed, "a plan of all rows is one for each");
        }
        radix::sort(words, scratch, (low, low + plan.bits()), &mut Ahead::default());
        let before = group.to_vec();
        for (row, word) in group.iter_mut().zip(&*words) {
            *row = before[(word & ((1 << low) - 1)) as usize];
        }
        words.chunk_by(move |a, b| (a ^ b) >> low == 0).map(<[u64]>::len)
    }
}
