//! The split itself: ids and a record batch in, a permuted record batch and offsets out.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;

use super::partitioned::Partitioned;
use crate::error::{Error, Result};

/// More partitions than this would take more memory for their offsets than most record batches have.
const MAX_PARTITIONS: usize = 1 << 24;

/// Splits record batches by ids; keeps its working memory.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    partitions: usize,
}

impl Splitter {
    pub(super) fn new(partitions: usize) -> Self {
        Self { partitions }
    }

    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }

    /// The number of partitions, which is neither 0 nor too large.
    pub(super) fn checked_partitions(&self) -> Result<u32> {
        match u32::try_from(self.partitions) {
            Ok(partitions) if (1..=MAX_PARTITIONS).contains(&self.partitions) => Ok(partitions),
            _ => Err(Error::InvalidOrder(format!(
                "{} partitions: there can be 1 to {MAX_PARTITIONS}",
                self.partitions
            ))),
        }
    }

    pub(super) fn split(&mut self, batch: &RecordBatch, ids: &[u32]) -> Result<Partitioned> {
        let partitions = self.checked_partitions()?;
        if ids.len() != batch.num_rows() {
            return Err(Error::InvalidOrder(format!(
                "{} ids for {} rows",
                ids.len(),
                batch.num_rows()
            )));
        }
        if let Some(row) = ids.iter().position(|&id| id >= partitions) {
            let (id, partitions) = (ids[row], self.partitions);
            return Err(Error::PartitionOutOfRange { row, id, partitions });
        }
        let mut offsets = vec![0; self.partitions + 1];
        for &id in ids {
            offsets[id as usize + 1] += 1;
        }
        for index in 1..offsets.len() {
            offsets[index] += offsets[index - 1];
        }
        let mut cursors = offsets.clone();
        let mut permutation = vec![0; ids.len()];
        for (row, &id) in (0u32..).zip(ids) {
            let cursor = &mut cursors[id as usize];
            permutation[*cursor] = row;
            *cursor += 1;
        }
        let permuted = take_record_batch(batch, &UInt32Array::from(permutation))?;
        Ok(Partitioned::new(permuted, offsets))
    }
}
