//! Reading a batch: slabs of rows, and record batches decoded from them.
//!
//! ```text
//! sources --brought down to what the budget merges at once--> merger --> slab, slab, ... --> RecordBatch
//!                                                       \--> shares ---^
//!                                            merged ahead by helpers, on threads of theirs
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Batch;
use super::settle::within_budget;
use crate::chunk::{Chunk, Findings, Finish, Wraps, describe};
use crate::error::{Error, Result};
use crate::merge::{Merger, Shares, Source};
use crate::order::Layout;
use crate::pool::Pool;
use crate::rows;
use crate::time::Time;

/// Rows of a [`Batch`] in order, merged as they are asked for.
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

/// Where rows come from.
enum Rows {
    /// What is to be merged, until the first rows are asked for.
    Unmerged(Vec<Source>),
    Merged(Box<Merger>),
    /// With the chunks of a share that was taken.
    Shared(Arc<Shares>, VecDeque<Arc<Chunk>>),
}

/// Merges rows of [`Slabs`] ahead of who takes them.
#[derive(Clone, Debug)]
pub struct MergeHelper(Arc<Shares>);

impl MergeHelper {
    /// Merges some MiB of rows, while less than `bytes` of them wait to be taken and there is memory to spare; false if it did
    /// not. What goes wrong is told to who takes the rows.
    pub fn help(&self, bytes: usize) -> bool {
        self.0.help(bytes)
    }
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

    /// A slab of its first and its last row, which tell whether all are of one key; of the only one, if there is no other.
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

    /// Lets other threads merge ahead, before any rows are asked for: by what is returned, as often as they have time. None if
    /// there is nothing to merge, or rows come from streams or from a store. The rows are the same, and where slabs end.
    ///
    /// # Errors
    /// What merging reports, where there are more runs than can be merged at once.
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

    /// What is to be merged, brought down to what is merged at once, if nothing was asked for yet. There are no rows after an
    /// error.
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

    /// What the rules did to the rows so far.
    fn findings(&self) -> Findings {
        match &self.rows {
            Rows::Unmerged(_) => Findings::default(),
            Rows::Merged(merger) => merger.findings().clone(),
            Rows::Shared(shares, _) => shares.findings(),
        }
    }

    /// The next rows: at most `rows` of them, and no more once they take `bytes` bytes, but always
    /// one. `None` at the end.
    ///
    /// # Errors
    /// What merging and reading back report; at the end, [`Error::NegativeDiff`] and
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
            // The row that reaches the bytes still belongs to the slab.
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

    /// Keys left out so far because their last change deletes them.
    pub fn deleted(&self) -> u64 {
        self.findings().deleted
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
    /// [`Error::InvalidOrder`] if there is no such column; if values of a column's type cannot be held in a row.
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
    /// cannot hold them. The decoder goes on with other slabs.
    pub fn decode(&mut self, slab: &Slab) -> Result<RecordBatch> {
        let mut rows: Vec<&[u8]> = Vec::with_capacity(slab.rows);
        for (chunk, range) in &slab.pieces {
            let slice = chunk.rows();
            rows.extend(range.clone().map(|index| slice.row(index)));
        }
        self.inner.decode(&rows)
    }

    /// Rows that lie anywhere as columns, as a [`Cursor`](crate::Cursor) shows them.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn decode_rows<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<RecordBatch> {
        let rows: Vec<&[u8]> = rows.into_iter().collect();
        self.inner.decode(&rows)
    }
}

/// Record batches of a [`Batch`], merged and decoded as they are asked for. Ends with the first error.
#[must_use = "rows are merged as they are asked for"]
pub struct RecordBatches {
    slabs: Slabs,
    decoder: Decoder,
    rows: usize,
    failed: bool,
}

impl RecordBatches {
    pub(crate) fn new<T: Time>(batch: Batch<T>, finish: Finish, rows: usize) -> Result<Self> {
        let all: Vec<usize> = (0..batch.body.layout.schema().fields().len()).collect();
        let decoder = Decoder::new(&batch.body.layout, &all)?;
        Ok(Self { slabs: batch.slabs(finish), decoder, rows, failed: false })
    }
}

/// An error is the engine's own within Arrow's: made an [`Error`] by `?`, it is what it was.
impl Iterator for RecordBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        /// A record batch of wide rows is cut here: below the 2 GiB that string offsets reach.
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

impl std::fmt::Debug for Slabs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Slabs");
        out.field("order", &self.layout.order()).field("finish", &self.finish);
        out.finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("schema", self.schema()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RecordBatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("RecordBatches");
        out.field("slabs", &self.slabs).field("rows", &self.rows).finish_non_exhaustive()
    }
}
