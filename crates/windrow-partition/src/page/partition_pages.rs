//! From record batches to pages of each partition, in one call.
//!
//! ```text
//! append(batch) --> PartitionBuilder --chunks of partition p--> PageFormat --page--> send(p, page)
//! ```
//!
//! Invariant: every appended row is in one page that was handed on, or waits, or an error was
//! returned; the rows of a partition are handed on in the order in which they came.

use arrow_array::RecordBatch;
use windrow_rows::{Error, Result};

use crate::partition::PartitionBuilder;

/// A format of pages.
pub trait PageFormat {
    /// Returns the bytes of the page of `batch`: exact without a codec, else an upper bound.
    ///
    /// # Errors
    /// Those of the format.
    fn bytes(&self, batch: &RecordBatch) -> Result<usize>;

    /// Appends the page of `batch` to `out`, and returns its bytes.
    ///
    /// # Errors
    /// Those of the format.
    fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<usize>;
}

macro_rules! is_format {
    ($format:ty) => {
        impl PageFormat for $format {
            fn bytes(&self, batch: &RecordBatch) -> Result<usize> {
                <$format>::bytes(self, batch)
            }

            fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<usize> {
                <$format>::write(self, batch, out)
            }
        }
    };
}
#[cfg(feature = "ipc")]
is_format!(super::IpcPages);
#[cfg(feature = "presto")]
is_format!(super::PrestoPages);

/// Gathers the rows of each partition, and writes them as pages.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_partition::{IpcPages, PartitionBuilder, PartitionPages, Partitioner};
/// use windrow_pool::{Budget, Pool};
/// use windrow_rows::Order;
///
/// # let users = Int64Array::from_iter_values(0..1000);
/// # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
/// # let reader = vec![batch.clone(); 10];
/// # let mut sent = 0;
/// let layout = Order::by(["user"]).bind(&batch.schema())?;
/// let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(16 << 20))?;
/// let builder = PartitionBuilder::new(Partitioner::hash(&layout, 64), &batch.schema(), &pool)?;
/// let format = IpcPages::new(&batch.schema()).checksum(true);
/// let mut pages = PartitionPages::new(builder, format);
/// let mut send = |partition: usize, page: Vec<u8>| {
///     // send `page` to whoever takes `partition`
///     # sent += page.len() + partition;
///     Ok(())
/// };
/// for batch in reader {
///     pages.append(&batch)?;
///     pages.flush_from(1 << 20, &mut send)?;
/// }
/// pages.finish(&mut send)?;
/// # assert!(sent > 0);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
///
/// Rows wait within the budget of the builder's pool. A page is beyond it until it is handed on,
/// and has about [`PartitionBuilder::chunk_bytes`].
#[derive(Debug)]
pub struct PartitionPages<F> {
    builder: PartitionBuilder,
    format: F,
    /// True if rows were lost to an error.
    lost: bool,
}

impl<F: PageFormat> PartitionPages<F> {
    /// Creates pages of the partitions of `builder`.
    pub fn new(builder: PartitionBuilder, format: F) -> Self {
        Self { builder, format, lost: false }
    }

    /// Adds the rows of `batch`, each to the partition that the builder's partitioner assigns.
    ///
    /// # Errors
    /// As [`PartitionBuilder::push`].
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.builder.push(batch)
    }

    /// Adds the rows of `batch`: row `i` to partition `ids[i]`.
    ///
    /// # Errors
    /// As [`PartitionBuilder::push_by_ids`].
    pub fn append_by_ids(&mut self, batch: &RecordBatch, ids: &[u32]) -> Result<()> {
        self.builder.push_by_ids(batch, ids)
    }

    /// Hands the rows of each partition with at least `bytes` waiting bytes to `send`, as pages.
    /// Rows that have not been split yet do not count; see [`PartitionBuilder::settle`].
    ///
    /// # Cost
    /// A look at each partition. Of a partition that is flushed, one copy of the rows more than
    /// [`PartitionBuilder::flush_split`].
    ///
    /// # Errors
    /// As [`PartitionBuilder::flush_split`], those of the format and of `send`: rows may be lost, and any
    /// later flush then returns [`Error::Lost`].
    pub fn flush_from(
        &mut self,
        bytes: usize,
        mut send: impl FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        for partition in 0..self.builder.partitions() {
            let is_long = self.builder.bytes(partition) >= bytes;
            if is_long && self.builder.rows(partition) > 0 {
                self.flush(partition, &mut send)?;
            }
        }
        Ok(())
    }

    /// Hands all rows to `send`, as pages.
    ///
    /// # Errors
    /// As [`PartitionPages::flush_from`].
    pub fn finish(mut self, send: impl FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> {
        self.builder.settle()?;
        self.flush_from(0, send)
    }

    fn flush(
        &mut self,
        partition: usize,
        send: &mut impl FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.lost, true) {
            return Err(Error::Lost);
        }
        for chunk in self.builder.flush_split(partition)? {
            let chunk = chunk?;
            let mut page = Vec::with_capacity(self.format.bytes(&chunk)?);
            self.format.write(&chunk, &mut page)?;
            send(partition, page)?;
        }
        self.lost = false;
        Ok(())
    }
}
