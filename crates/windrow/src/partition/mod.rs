//! Partitioning: a record batch split into parts by the values of its key.
//!
//! ```text
//! rows   0 1 2 3 4 5      hash(key) * P >> 64      parts   0: 1 4   1: 0 2 5   2: 3
//! ```
//!
//! Invariant: stable - the rows of a part keep the order they had; equal keys go to the same part.

mod hash;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;

use crate::error::Result;
use crate::order::Layout;

/// Splits record batches into a fixed number of parts.
#[derive(Clone, Debug)]
pub struct Partitioner {
    layout: Layout,
    parts: usize,
}

impl Partitioner {
    /// `parts` parts by a hash of the layout's key. The hash is the same in every process and on
    /// every machine; nulls are equal, floats are told apart bit by bit.
    pub fn hash(layout: &Layout, parts: usize) -> Self {
        Self { layout: layout.clone(), parts: parts.max(1) }
    }

    /// The parts of `batch`, in order, empty ones included: slices of one permuted record batch.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`] if the record batch is not of the layout's schema.
    pub fn split(&self, batch: &RecordBatch) -> Result<Vec<RecordBatch>> {
        self.layout.check_schema(batch.schema_ref())?;
        let mut hashes = vec![0; batch.num_rows()];
        for column in self.layout.key() {
            hash::combine(batch.column(column), &mut hashes)?;
        }
        let part = |hash: u64| ((u128::from(hash) * self.parts as u128) >> 64) as usize;
        let mut ends = vec![0u32; self.parts + 1];
        for &hash in &hashes {
            ends[part(hash) + 1] += 1;
        }
        for index in 1..ends.len() {
            ends[index] += ends[index - 1];
        }
        let mut cursors = ends.clone();
        let mut permutation = vec![0u32; hashes.len()];
        for (row, &hash) in (0u32..).zip(&hashes) {
            let cursor = &mut cursors[part(hash)];
            permutation[*cursor as usize] = row;
            *cursor += 1;
        }
        let permuted = take_record_batch(batch, &UInt32Array::from(permutation))?;
        let ranges = ends.windows(2);
        Ok(ranges.map(|r| permuted.slice(r[0] as usize, (r[1] - r[0]) as usize)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::order::Order;

    #[test]
    fn parts_are_stable_complete_and_closed_under_the_key() {
        let names =
            StringArray::from_iter((0..1000).map(|i| (i % 7 != 0).then(|| format!("n{}", i % 50))));
        let numbers = Int64Array::from_iter_values(0..1000);
        let columns = [("name", Arc::new(names) as ArrayRef), ("number", Arc::new(numbers) as _)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let layout = Order::by("name").bind(&batch.schema()).unwrap();
        let parts = Partitioner::hash(&layout, 8).split(&batch).unwrap();
        assert_eq!(parts.len(), 8);
        assert_eq!(parts.iter().map(RecordBatch::num_rows).sum::<usize>(), 1000);
        let mut home = std::collections::HashMap::new();
        for (index, part) in parts.iter().enumerate() {
            assert!(part.column(1).as_primitive::<Int64Type>().values().is_sorted());
            for name in part.column(0).as_string::<i32>() {
                assert_eq!(*home.entry(name.map(str::to_owned)).or_insert(index), index);
            }
        }
    }
}
