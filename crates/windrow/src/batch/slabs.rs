//! Reads a batch: blocks of rows, and record batches decoded from them.
//!
//! ```text
//! sources --settled within the budget--> merger --> slab, slab, ... --> RecordBatch
//!                                    \--> shares ---^
//!                                         merged ahead by helper threads
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::settle::within_budget;
use crate::chunk::{Chunk, Findings, Finish, Wraps, describe};
use crate::merge::{Merger, Shares, Source};
use windrow_pool::Pool;
use windrow_rows::engine;
use windrow_rows::{Error, Layout, Result};

/// The rows of a [`Batch`](crate::Batch) in order, merged on demand.
#[must_use = "rows are merged as they are asked for"]
pub struct Slabs {
    layout: Layout,
    pool: Pool,
    wraps: Wraps,
    finish: Finish,
    rows: Rows,
    pending: Option<(Arc<Chunk>, usize)>,
    failed: bool,
}

/// The state of the merge.
enum Rows {
    /// The sources, until the first read.
    Unmerged(Vec<Source>),
    Merged(Box<Merger>),
    /// A merge in shares, with the remaining chunks of the current share.
    Shared(Arc<Shares>, VecDeque<Arc<Chunk>>),
}

/// Merges rows of [`Slabs`] ahead of the reader.
#[derive(Clone, Debug)]
pub struct MergeHelper(Arc<Shares>);

impl MergeHelper {
    /// Merges some MiB of rows, if less than `bytes` of merged rows wait and the budget has memory
    /// to spare. Returns false if nothing was merged. The reader of the rows receives the errors.
    pub fn help(&self, bytes: usize) -> bool {
        self.0.help(bytes)
    }
}

/// A block of a few thousand sorted rows, still encoded.
#[derive(Debug)]
pub struct Slab {
    pieces: Vec<(Arc<Chunk>, Range<usize>)>,
    rows: usize,
    bytes: usize,
}

impl Slab {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of the encoded rows: a measure of size independent of anything else.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a block of the first and the last row, which show whether all rows have one key. A
    /// block of one row yields one row.
    pub fn ends(&self) -> Self {
        let first = self.pieces.first().map(|(chunk, rows)| (chunk, rows.start));
        let last = self.pieces.last().map(|(chunk, rows)| (chunk, rows.end - 1));
        let ends = first.into_iter().chain(last.filter(|_| self.rows > 1));
        let pieces: Vec<_> = ends.map(|(chunk, row)| (Arc::clone(chunk), row..row + 1)).collect();
        let bytes = pieces.iter().map(|(chunk, row)| chunk.rows().span(row.clone()).len()).sum();
        Self { rows: pieces.len(), pieces, bytes }
    }
}

impl Slabs {
    pub(super) fn new(
        layout: &Layout,
        pool: &Pool,
        wraps: Wraps,
        finish: Finish,
        sources: Vec<Source>,
    ) -> Self {
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            wraps,
            finish,
            rows: Rows::Unmerged(sources),
            pending: None,
            failed: false,
        }
    }

    /// Returns a helper for threads that merge ahead as time permits. Call before the first read.
    /// Returns `None` if there is nothing to merge, or rows come from streams or a store. Rows and
    /// block boundaries stay the same.
    ///
    /// # Errors
    /// Errors of merging, if there are more runs than can be merged at once.
    pub fn helper(&mut self) -> Result<Option<MergeHelper>> {
        let Some(sources) = self.sources()? else { return Ok(None) };
        let (layout, pool, wraps) = (&self.layout, &self.pool, &self.wraps);
        if sources.iter().any(|source| source.run().is_none()) {
            self.rows = Rows::Unmerged(sources);
            return Ok(None);
        }
        let runs: Vec<_> = sources.into_iter().filter_map(Source::into_run).collect();
        match Shares::new(layout, pool, wraps, self.finish, runs) {
            Ok(shares) => {
                let shares = Arc::new(shares);
                self.rows = Rows::Shared(Arc::clone(&shares), VecDeque::new());
                Ok(Some(MergeHelper(shares)))
            }
            Err(runs) => {
                self.rows = Rows::Unmerged(runs.into_iter().map(Source::Run).collect());
                Ok(None)
            }
        }
    }

    /// Takes the sources, reduced to what can be merged at once, if no rows were read yet. No rows
    /// follow an error.
    fn sources(&mut self) -> Result<Option<Vec<Source>>> {
        let Rows::Unmerged(sources) = &mut self.rows else { return Ok(None) };
        let sources = std::mem::take(sources);
        let sources = within_budget(&self.layout, &self.pool, &self.wraps, sources);
        self.failed |= sources.is_err();
        sources.map(Some)
    }

    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        if let Some(sources) = self.sources()? {
            let (layout, pool, wraps) = (&self.layout, &self.pool, &self.wraps);
            let mut merger = Merger::new(layout, pool, self.finish, wraps, sources);
            merger.fold_keys();
            self.rows = Rows::Merged(Box::new(merger));
        }
        match &mut self.rows {
            Rows::Unmerged(_) => Ok(None),
            Rows::Merged(merger) => merger.next_chunk(),
            Rows::Shared(shares, chunks) => loop {
                if let Some(chunk) = chunks.pop_front() {
                    return Ok(Some(chunk));
                }
                match shares.next()? {
                    Some(share) => chunks.extend(share),
                    None => return Ok(None),
                }
            },
        }
    }

    /// Returns the findings of the rule so far.
    fn findings(&self) -> Findings {
        match &self.rows {
            Rows::Unmerged(_) => Findings::default(),
            Rows::Merged(merger) => merger.findings().clone(),
            Rows::Shared(shares, _) => shares.findings(),
        }
    }

    /// Returns the next block: at most `rows` rows, ending with the row that reaches `bytes` bytes.
    /// Returns `None` at the end.
    ///
    /// # Errors
    /// Errors of merging and reading back; at the end, [`Error::NegativeDiff`] and
    /// [`Error::DiffOverflow`]. After an error, [`Error::Lost`].
    pub fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<Slab>> {
        if self.failed {
            return Err(Error::Lost);
        }
        let slab = self.merged(rows, bytes);
        self.failed = slab.is_err();
        slab
    }

    fn merged(&mut self, rows: usize, bytes: usize) -> Result<Option<Slab>> {
        let (rows, bytes) = (rows.max(1), bytes.max(1));
        let mut slab = Slab { pieces: Vec::new(), rows: 0, bytes: 0 };
        while slab.rows < rows && slab.bytes < bytes {
            let (chunk, at) = match self.pending.take() {
                Some(pending) => pending,
                None => match self.next_chunk()? {
                    Some(chunk) => (chunk, 0),
                    None => break,
                },
            };
            let view = chunk.rows();
            let most = at.saturating_add(rows - slab.rows).min(chunk.len());
            // The row that reaches the byte limit still belongs to the block.
            let end = (at + view.fitting(at..most, bytes - slab.bytes - 1) + 1).min(most);
            slab.rows += end - at;
            slab.bytes += view.span(at..end).len();
            if end < chunk.len() {
                self.pending = Some((Arc::clone(&chunk), end));
            }
            slab.pieces.push((chunk, at..end));
        }
        if slab.rows > 0 {
            return Ok(Some(slab));
        }
        self.pool.release_recycled();
        self.wraps.check(&self.layout)?;
        let Findings { negative, negative_rows, .. } = self.findings();
        if negative > 0 {
            return Err(Error::NegativeDiff {
                count: negative,
                rows: negative_rows.iter().map(|row| describe(&self.layout, row)).collect(),
            });
        }
        Ok(None)
    }

    /// Returns the number of keys omitted so far because their last change deletes them.
    pub fn deleted(&self) -> u64 {
        self.findings().deleted
    }
}

/// Decodes blocks into record batches of selected columns.
pub struct Decoder {
    inner: engine::Decoder,
}

impl Decoder {
    /// Returns a decoder of the columns at `projection` in the layout's schema, in that order.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if a column does not exist; an error if rows cannot hold values of a
    /// column's type.
    pub fn new(layout: &Layout, projection: &[usize]) -> Result<Self> {
        let columns = layout.schema().fields().len();
        if let Some(column) = projection.iter().find(|&&column| column >= columns) {
            return Err(Error::InvalidOrder(format!("no column {column}; there are {columns}")));
        }
        Ok(Self { inner: engine::Decoder::new(layout, projection)? })
    }

    /// Returns the schema of the record batches.
    pub fn schema(&self) -> &SchemaRef {
        self.inner.schema()
    }

    /// Decodes the rows of `slab`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the rows do not match the decoder's layout, [`Error::Value`] if a
    /// column cannot hold a value. The decoder stays usable.
    pub fn decode(&mut self, slab: &Slab) -> Result<RecordBatch> {
        let mut rows: Vec<&[u8]> = Vec::with_capacity(slab.rows);
        for (chunk, range) in &slab.pieces {
            let slice = chunk.rows();
            rows.extend(range.clone().map(|index| slice.row(index)));
        }
        self.inner.decode(&rows)
    }

    /// Decodes separate rows, such as those of a [`Cursor`](crate::Cursor).
    ///
    /// # Errors As for [`Decoder::decode`].
    pub fn decode_rows<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<RecordBatch> {
        let rows: Vec<&[u8]> = rows.into_iter().collect();
        self.inner.decode(&rows)
    }
}

/// Record batches of a [`Batch`](crate::Batch), merged and decoded on demand. Ends with the first error.
#[must_use = "rows are merged as they are asked for"]
pub struct RecordBatches {
    slabs: Slabs,
    decoder: Decoder,
    rows: usize,
    failed: bool,
}

impl RecordBatches {
    pub(crate) fn new(slabs: Slabs, rows: usize) -> Result<Self> {
        let all: Vec<usize> = (0..slabs.layout.schema().fields().len()).collect();
        let decoder = Decoder::new(&slabs.layout, &all)?;
        Ok(Self { slabs, decoder, rows, failed: false })
    }
}

/// Errors are engine errors wrapped in Arrow's type; `?` unwraps such an error into the original
/// [`Error`].
impl Iterator for RecordBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        /// Splits record batches of wide rows below the 2 GiB range of string offsets.
        const MOST_BYTES: usize = 1 << 30;
        if self.failed {
            return None;
        }
        let slab = self.slabs.next(self.rows, MOST_BYTES).transpose()?;
        let decoded = slab.and_then(|slab| self.decoder.decode(&slab));
        self.failed = decoded.is_err();
        Some(decoded.map_err(ArrowError::from))
    }
}

impl RecordBatchReader for RecordBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.decoder.schema())
    }
}

shown!(Slabs, it => order: it.layout.order(), finish: it.finish);

shown!(Decoder, it => schema: it.schema());

shown!(RecordBatches, it => slabs: it.slabs, rows: it.rows);
