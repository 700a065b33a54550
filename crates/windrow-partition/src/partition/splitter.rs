//! The split itself: turns ids and a record batch into a permuted record batch and offsets.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;

use super::columns::{Columns, load};
use super::memory::Memory;
use super::partitioned::Partitioned;
use windrow_kernel::partition::Level;
use windrow_kernel::partition::bits::Scratch;
use windrow_kernel::partition::order::{Order, Plan};
use windrow_rows::{Error, Result};

/// Maximum number of partitions: offsets of more would take more memory than most record batches.
const MAX_PARTITIONS: usize = 1 << 24;

/// Splits record batches by ids. Keeps its workspace.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    pub(super) partitions: usize,
    /// Strings of views stay where they are.
    pub(super) is_pinning: bool,
    order: Order,
    pub(super) memory: Memory,
    scratch: Scratch,
    bitmaps: Vec<BooleanBuffer>,
}

impl Splitter {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            partitions,
            is_pinning: false,
            order: Order::new(Level::detect()),
            memory: Memory::default(),
            scratch: Scratch::default(),
            bitmaps: Vec::new(),
        }
    }

    pub(super) fn split(&mut self, batch: RecordBatch, ids: &[u32]) -> Result<Partitioned> {
        checked_partitions(self.partitions)?;
        let rows = batch.num_rows();
        if u32::try_from(rows).is_err() {
            return Err(Error::InvalidOrder(format!("{rows} rows in one record batch")));
        }
        if ids.len() != rows {
            return Err(Error::InvalidOrder(format!("{} ids for {rows} rows", ids.len())));
        }
        let order = match self.order.plan(ids, self.partitions, load(&batch)) {
            Plan::Ordered(order) => order,
            Plan::Ascending => {
                return Ok(Partitioned::new(batch, self.order.take_offsets()));
            }
            Plan::Outside => return Err(outside(ids, self.partitions)),
        };
        let mut columns = Columns {
            order,
            memory: &mut self.memory,
            scratch: &mut self.scratch,
            bitmaps: &mut self.bitmaps,
            rows: None,
            is_pinning: self.is_pinning,
        };
        let permuted = columns.record_batch(batch)?;
        Ok(Partitioned::new(permuted, self.order.take_offsets()))
    }
}

/// Returns `partitions`. Fails if the number is 0 or too large.
pub(super) fn checked_partitions(partitions: usize) -> Result<u32> {
    match u32::try_from(partitions) {
        Ok(checked) if (1..=MAX_PARTITIONS).contains(&partitions) => Ok(checked),
        _ => Err(Error::InvalidOrder(format!(
            "{partitions} partitions: there can be 1 to {MAX_PARTITIONS}"
        ))),
    }
}

/// Returns the error for the first of `ids` without a partition.
fn outside(ids: &[u32], partitions: usize) -> Error {
    let outside = ids.iter().enumerate().find(|(_, id)| **id as usize >= partitions);
    let (row, &id) = outside.expect("an id was found to be outside");
    Error::PartitionOutOfRange { row, id, partitions }
}
