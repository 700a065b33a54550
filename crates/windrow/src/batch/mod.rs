//! Batches: what is sorted, and the ways to read it.
//!
//! ```text
//! runs --merged as it is read--> slabs (some thousand rows, wherever they lie) --decode--> RecordBatch
//! ```
//!
//! The last merge is not written down: its rows are decoded from where they are. Where slabs end
//! depends on the rows and on what the reader asks for, never on chunks, memory or threads.
//!
//! Invariant: rows ascend over all slabs, and the rule of the layout holds over all of them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::chunk::{Chunk, Findings, Finish, describe};
use crate::error::{Error, Result};
use crate::merge::{ChunkSource, Merger, Run};
use crate::order::Layout;
use crate::pool::Pool;
use crate::rows;

/// Sorted rows, to be read once.
pub struct Batch {
    layout: Layout,
    pool: Pool,
    sources: Vec<Box<dyn ChunkSource>>,
}

impl Batch {
    pub(crate) fn new(layout: &Layout, pool: &Pool, runs: Vec<Run>) -> Self {
        let sources = runs.into_iter().map(|run| Box::new(run) as Box<dyn ChunkSource>).collect();
        Self::of_sources(layout, pool, sources)
    }

    pub(crate) fn of_sources(
        layout: &Layout,
        pool: &Pool,
        sources: Vec<Box<dyn ChunkSource>>,
    ) -> Self {
        Self { layout: layout.clone(), pool: pool.clone(), sources }
    }

    /// All of `batches`, which are of one layout, as one.
    pub fn union(layout: &Layout, pool: &Pool, batches: Vec<Self>) -> Self {
        let sources = batches.into_iter().flat_map(|batch| batch.sources).collect();
        Self::of_sources(layout, pool, sources)
    }

    /// The same rows, merged into one run in temporary files.
    ///
    /// # Errors
    /// What merging and spilling report.
    pub fn spill(self) -> Result<Self> {
        let mut merger = Merger::new(&self.layout, &self.pool, Finish::Log, self.sources);
        let run = Run::spilled(&self.pool, &mut merger)?;
        Ok(Self::new(&self.layout, &self.pool, vec![run]))
    }

    /// Runs that are still to be merged.
    pub fn runs(&self) -> usize {
        self.sources.len()
    }

    /// All columns of all rows, `rows` at a time; deletions and diffs as they are.
    ///
    /// # Errors
    /// What merging and decoding report, here and from the iterator.
    pub fn record_batches(self, rows: usize) -> Result<RecordBatches> {
        RecordBatches::new(self, Finish::Log, rows)
    }

    /// All columns of the rows that are there: deleted keys are left out, a row with diff n comes n
    /// times with diff 1. After the last row, a negative diff anywhere is [`Error::NegativeDiff`];
    /// changes at different times do not cancel, so order without a time what is to be one state.
    ///
    /// # Errors
    /// What merging and decoding report, here and from the iterator.
    pub fn snapshot(self, rows: usize) -> Result<RecordBatches> {
        RecordBatches::new(self, Finish::Snapshot, rows)
    }

    /// The rows in slabs, for readers that decode on several threads.
    pub fn slabs(self, finish: Finish) -> Slabs {
        Slabs {
            merger: Merger::new(&self.layout, &self.pool, finish, self.sources),
            layout: self.layout,
            pool: self.pool,
            pending: None,
        }
    }
}

/// Rows of a [`Batch`] in order, merged as they are asked for.
pub struct Slabs {
    layout: Layout,
    pool: Pool,
    merger: Merger,
    pending: Option<(Arc<Chunk>, usize)>,
}

/// A few thousand rows in order, not decoded yet.
#[derive(Debug)]
pub struct Slab {
    pieces: Vec<(Arc<Chunk>, Range<usize>)>,
    rows: usize,
    bytes: usize,
}

impl Slab {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that they take as rows: a measure of their size that depends on nothing else.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Slabs {
    /// The next rows: at most `rows` of them, and no more once they take `bytes` bytes, but always
    /// one. `None` at the end.
    ///
    /// # Errors
    /// What merging and reading back report; at the end, [`Error::NegativeDiff`].
    pub fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<Slab>> {
        let (rows, bytes) = (rows.max(1), bytes.max(1));
        let mut slab = Slab { pieces: Vec::new(), rows: 0, bytes: 0 };
        while slab.rows < rows && slab.bytes < bytes {
            let (chunk, at) = match self.pending.take() {
                Some(pending) => pending,
                None => match self.merger.next_chunk()? {
                    Some(chunk) => (Arc::new(chunk), 0),
                    None => break,
                },
            };
            let offsets = chunk.rows().offsets;
            let most = at.saturating_add(rows - slab.rows).min(chunk.len());
            // The row that reaches the bytes still belongs to the slab.
            let reaches = (offsets[at] as usize).saturating_add(bytes - slab.bytes);
            let end = at + offsets[at + 1..=most].partition_point(|&e| (e as usize) < reaches) + 1;
            let end = end.min(most);
            slab.rows += end - at;
            slab.bytes += (offsets[end] - offsets[at]) as usize;
            if end < chunk.len() {
                self.pending = Some((Arc::clone(&chunk), end));
            }
            slab.pieces.push((chunk, at..end));
        }
        if slab.rows > 0 {
            return Ok(Some(slab));
        }
        self.pool.release_recycled();
        let Findings { negative, negative_rows, .. } = self.merger.findings();
        if *negative > 0 {
            return Err(Error::NegativeDiff {
                count: *negative,
                rows: negative_rows.iter().map(|row| describe(&self.layout, row)).collect(),
            });
        }
        Ok(None)
    }

    /// Keys left out so far because their last change deletes them.
    pub fn deleted(&self) -> u64 {
        self.merger.findings().deleted
    }
}

/// Turns slabs into record batches of some of their columns.
pub struct Decoder {
    inner: rows::Decoder,
}

impl Decoder {
    /// A decoder to the columns at `projection` in the layout's schema, in that order.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if there is no such column; if a column's type has no value codec.
    pub fn new(layout: &Layout, projection: &[usize]) -> Result<Self> {
        let columns = layout.schema().fields().len();
        if let Some(column) = projection.iter().find(|&&column| column >= columns) {
            return Err(Error::InvalidOrder(format!("no column {column}; there are {columns}")));
        }
        Ok(Self { inner: rows::Decoder::new(layout, projection)? })
    }

    /// The schema of the record batches.
    pub fn schema(&self) -> &SchemaRef {
        self.inner.schema()
    }

    /// The rows of `slab` as columns.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the rows are not of the decoder's layout, [`Error::Value`] if a column
    /// cannot hold them.
    pub fn decode(&mut self, slab: &Slab) -> Result<RecordBatch> {
        let mut rows: Vec<&[u8]> = Vec::with_capacity(slab.rows);
        for (chunk, range) in &slab.pieces {
            let slice = chunk.rows();
            rows.extend(range.clone().map(|index| slice.row(index)));
        }
        self.inner.decode(&rows)
    }
}

/// Record batches of a [`Batch`], merged and decoded as they are asked for. Ends with the first error.
pub struct RecordBatches {
    slabs: Slabs,
    decoder: Decoder,
    rows: usize,
    failed: bool,
}

impl RecordBatches {
    pub(crate) fn new(batch: Batch, finish: Finish, rows: usize) -> Result<Self> {
        let all: Vec<usize> = (0..batch.layout.schema().fields().len()).collect();
        let decoder = Decoder::new(&batch.layout, &all)?;
        Ok(Self { slabs: batch.slabs(finish), decoder, rows, failed: false })
    }

    /// The schema of the record batches.
    pub fn schema(&self) -> &SchemaRef {
        self.decoder.schema()
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        /// A record batch of wide rows is cut here: below the 2 GiB that string offsets reach.
        const MOST_BYTES: usize = 1 << 30;
        if self.failed {
            return None;
        }
        let slab = self.slabs.next(self.rows, MOST_BYTES).transpose()?;
        let decoded = slab.and_then(|slab| self.decoder.decode(&slab));
        self.failed = decoded.is_err();
        Some(decoded)
    }
}
