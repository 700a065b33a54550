//! The chunks of a batch of one run, for readers with their own traversal.
//!
//! ```text
//! batch   | chunk 0 | chunk 1 | chunk 2 |     last rows: always in memory
//!                     ^ read: ChunkRows       in memory while it is referenced
//! row     key | value | time | diff
//! ```
//!
//! Invariant: a held chunk stays in memory and counts in the budget.

use std::sync::Arc;

use super::Batch;
use crate::chunk::{Kept, end_width};
use crate::merge::FencedRun;
use windrow_rows::{Error, Result, Rule, Time};

/// Reads the chunks of one batch of changes, in any order. Clones share the chunks, as batches do.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
/// use windrow::{Batcher, ChunkReader, Order, Pool, key_len};
///
/// # let changes = RecordBatch::try_from_iter([
/// #     ("user", Arc::new(UInt64Array::from(vec![7, 9])) as ArrayRef),
/// #     ("diff", Arc::new(Int64Array::from(vec![1, 1])) as ArrayRef),
/// # ])?;
/// let layout = Order::by("user").diff("diff").bind(&changes.schema())?;
/// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
/// batcher.push(&changes)?;
/// let reader = ChunkReader::new(&batcher.finish()?.settle()?)?;
/// assert_eq!(reader.chunks(), 1);
/// let chunk = reader.read(0)?;
/// assert_eq!((chunk.len(), key_len(&layout, chunk.body(1))), (2, 8));
/// assert_eq!(chunk.body(1), 9u64.to_be_bytes());
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChunkReader {
    run: Arc<FencedRun>,
    /// Bytes of a row's time and diffs.
    behind: usize,
}

/// The rows of a chunk, ascending by everything but their diffs. Pins the chunk in memory.
#[derive(Clone, Debug)]
pub struct ChunkRows {
    chunk: Kept,
    /// Bytes of a row's time and diffs.
    behind: usize,
}

impl ChunkReader {
    /// Returns a reader of `batch`, which keeps its chunks alive. Reads the metadata of every
    /// chunk.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the batch has several runs (see [`Batch::settle`]), or its layout
    /// has no diffs.
    pub fn new<T: Time>(batch: &Batch<T>) -> Result<Self> {
        if batch.layout().rule() != Rule::Sum {
            return Err(Error::InvalidOrder("a reader of chunks needs an order with diffs".into()));
        }
        let run = batch.settled_run()?.unwrap_or_default();
        Ok(Self { run, behind: end_width(batch.layout()) })
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.run.chunks()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.run.rows()
    }

    /// Returns the last row of a chunk, without reading the chunk. Returns `None` if the chunk does
    /// not exist, or if it may be spilled and the row is longer than 1 KiB.
    pub fn last_row(&self, chunk: usize) -> Option<&[u8]> {
        self.run.last_row_of(chunk)
    }

    /// Returns the rows of a chunk. A spilled chunk is read back and stays in memory if the budget
    /// suffices.
    ///
    /// # Errors
    /// Errors of reading a chunk; [`Error::InvalidOrder`] if the chunk does not exist.
    pub fn read(&self, chunk: usize) -> Result<ChunkRows> {
        if chunk >= self.run.chunks() {
            return Err(Error::InvalidOrder(format!("no chunk {chunk} in {}", self.run.chunks())));
        }
        Ok(ChunkRows { chunk: self.run.read(chunk)?, behind: self.behind })
    }
}

impl ChunkRows {
    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.chunk.len()
    }

    /// Returns false: a chunk has at least one row.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunk.len() == 0
    }

    /// Returns the key and the value of row `index`.
    ///
    /// # Panics
    /// If the row does not exist.
    #[inline]
    pub fn body(&self, index: usize) -> &[u8] {
        self.split(index).0
    }

    /// Returns the time of row `index`, and eight bytes for each of its diffs.
    ///
    /// # Panics
    /// If the row does not exist.
    #[inline]
    pub fn end(&self, index: usize) -> &[u8] {
        self.split(index).1
    }

    #[inline(always)]
    fn split(&self, index: usize) -> (&[u8], &[u8]) {
        self.chunk.split(self.chunk.rows().row(index), self.behind)
    }
}
