//! Record batches to runs of chunks: rows collect in write buffers, then are sorted and shipped.
//!
//! ```text
//! push --prepared--> staged  | row | row | row |  --full, in order already--> run of one chunk
//!        ^                   | row | row | row |  --enough: order, rule-----> run of some chunks
//!      pending: small record batches wait
//! ```
//! With a memory limit, one full buffer is enough for a run.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::arrange::Arranger;
use super::builder::{Builder, Finish};
use super::pending::Pending;
use super::resident::{Chunk, OFFSET_BYTES};
use super::staged::Staged;
use super::view::View;
use super::wraps::Wraps;
use windrow_kernel::prefetch::Ahead;
use windrow_pool::Pool;
use windrow_rows::engine::{Encoder, Prepared};
use windrow_rows::{Error, Layout, Result};

/// Most rows in the write buffers: their indexes and sort words fit into the cache.
const MOST_ROWS: usize = 1 << 16;
/// Turns record batches into runs of chunks; accumulates across calls.
#[derive(Debug)]
pub(crate) struct Chunker {
    desk: Box<Desk>,
    pending: Pending,
    /// The full buffers, then the buffer that is being filled.
    staged: Vec<Staged>,
    /// Rows in all buffers.
    rows: usize,
    builder: Builder,
}

/// The receiver of a chunker's runs.
pub(crate) trait Runs {
    /// Called when rows are written to a buffer or start to wait.
    fn open(&mut self, pool: &Pool);

    /// Takes the chunks of a run.
    fn take(&mut self, layout: &Layout, pool: &Pool, chunks: Vec<Arc<Chunk>>) -> Result<()>;
}

/// Why a record batch was not pushed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The batch does not match the layout; no row was taken.
    Refused(Error),
    /// Rows of this batch or of others are lost.
    Lost(Error),
}

/// The workspace of a chunker. The pool keeps it for the next chunker, which mostly has the same
/// layout.
#[derive(Debug, Default)]
struct Desk {
    encoder: Option<Encoder>,
    arranger: Arranger,
}

impl Desk {
    fn of(layout: &Layout, pool: &Pool) -> Box<Self> {
        let mut desk = pool.scratch::<Self>();
        if !desk.encoder.as_ref().is_some_and(|encoder| encoder.layout().is(layout)) {
            desk.encoder = Some(Encoder::new(layout));
        }
        desk
    }

    /// Returns the encoder of `layout`.
    fn encoder(&mut self, layout: &Layout) -> &Encoder {
        self.encoder.get_or_insert_with(|| Encoder::new(layout))
    }
}

impl Drop for Chunker {
    fn drop(&mut self) {
        let desk = std::mem::take(&mut self.desk);
        self.pool().keep_scratch(desk);
    }
}

impl Chunker {
    /// Returns a chunker that records overflowing sums in `wraps`.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps) -> Self {
        Self {
            desk: Desk::of(layout, pool),
            pending: Pending::default(),
            staged: Vec::new(),
            rows: 0,
            builder: Builder::new(layout, pool, Finish::Log, wraps),
        }
    }

    /// Returns the layout of the rows.
    pub(crate) fn layout(&self) -> &Layout {
        self.builder.layout()
    }

    /// Returns the pool of the chunks.
    pub(crate) fn pool(&self) -> &Pool {
        self.builder.pool()
    }

    /// Takes the rows of `batch`; its first row has position `sequence` in the input. Hands
    /// finished runs to `runs` on the way, to stay within memory.
    pub(crate) fn push(
        &mut self,
        batch: &RecordBatch,
        sequence: u64,
        runs: &mut impl Runs,
    ) -> Result<(), Failure> {
        for _ in 0..2 {
            if self
                .pending
                .offer(self.builder.layout(), batch, sequence)
                .map_err(Failure::Refused)?
            {
                runs.open(self.pool());
                return Ok(());
            }
            self.push_pending(runs).map_err(Failure::Lost)?;
        }
        let layout = self.builder.layout();
        let prepared =
            self.desk.encoder(layout).prepare(batch, sequence).map_err(Failure::Refused)?;
        self.stage(&prepared, runs).map_err(Failure::Lost)
    }

    /// Takes encoded rows of the layout.
    pub(crate) fn push_rows(&mut self, rows: View<'_>, runs: &mut impl Runs) -> Result<()> {
        self.push_pending(runs)?;
        let len = |row: usize| rows.start(row + 1) - rows.start(row);
        self.stage_each(rows.len(), len, runs, |staged, layout, some| {
            staged.copy(layout, rows.part(some))
        })
    }

    /// Encodes the waiting record batches.
    fn push_pending(&mut self, runs: &mut impl Runs) -> Result<()> {
        if let Some((batch, sequence)) = self.pending.take()? {
            let prepared = self.desk.encoder(self.builder.layout()).prepare(&batch, sequence)?;
            self.stage(&prepared, runs)?;
        }
        Ok(())
    }

    /// Encodes rows into write buffers.
    fn stage(&mut self, rows: &Prepared, runs: &mut impl Runs) -> Result<()> {
        let encoder = self.desk.encoder.take().unwrap_or_else(|| Encoder::new(self.layout()));
        let len = |row| rows.row_len(row);
        let staged = self.stage_each(rows.len(), len, runs, |staged, layout, some| {
            staged.write(layout, &encoder, rows, some)
        });
        self.desk.encoder = Some(encoder);
        staged
    }

    /// Writes `count` rows to buffers. `len` returns the bytes of a row; `write` writes as many
    /// rows of a range as fit.
    fn stage_each(
        &mut self,
        count: usize,
        len: impl Fn(usize) -> usize,
        runs: &mut impl Runs,
        write: impl Fn(&mut Staged, &Layout, Range<usize>) -> usize,
    ) -> Result<()> {
        let mut next = 0;
        while next < count {
            let some = next..count.min(next + MOST_ROWS - self.rows);
            let written = match self.staged.last_mut() {
                Some(staged) => write(staged, self.builder.layout(), some),
                None => 0,
            };
            if written == 0 {
                self.close(runs)?;
                let (layout, pool) = (self.builder.layout(), self.builder.pool());
                self.staged.push(Staged::new(layout, pool, len(next) + OFFSET_BYTES)?);
            } else {
                runs.open(self.builder.pool());
                (self.rows, next) = (self.rows + written, next + written);
            }
        }
        Ok(())
    }

    /// Sorts and ships all rows, including waiting record batches.
    pub(crate) fn flush(&mut self, runs: &mut impl Runs) -> Result<()> {
        self.push_pending(runs)?;
        self.close(runs)?;
        self.ship(runs)
    }

    /// Closes the last buffer: makes a chunk of rows in order, or leaves the rows to be sorted with
    /// the rows of earlier buffers.
    fn close(&mut self, runs: &mut impl Runs) -> Result<()> {
        let Some(last) = self.staged.pop_if(|last| last.look(self.builder.layout())) else {
            let bytes: usize = self.staged.iter().map(|staged| staged.buffer.len()).sum();
            let enough = bytes + self.pool().chunk_bytes() > self.pool().stage_bytes();
            return if enough || self.rows == MOST_ROWS { self.ship(runs) } else { Ok(()) };
        };
        self.rows -= last.rows;
        self.ship(runs)?;
        let (layout, pool) = (self.builder.layout(), self.builder.pool());
        match last.into_chunk(layout, pool) {
            Some(chunk) => runs.take(layout, pool, vec![Arc::new(chunk)]),
            None => Ok(()),
        }
    }

    /// Sorts and ships the rows of all buffers.
    fn ship(&mut self, runs: &mut impl Runs) -> Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.rows = 0;
        let staged = std::mem::take(&mut self.staged);
        self.builder.restart();
        let stride = self.layout().stride();
        let parts: Vec<View<'_>> = staged.iter().map(|staged| staged.view(stride)).collect();
        let arranger = &mut self.desk.arranger;
        self.builder.push_unordered(arranger, &parts, false, &mut Ahead::default())?;
        staged.into_iter().for_each(|staged| staged.recycle(self.builder.pool()));
        self.builder.flush();
        let chunks: Vec<_> = std::iter::from_fn(|| self.builder.take()).collect();
        if chunks.is_empty() {
            return Ok(());
        }
        runs.take(self.builder.layout(), self.builder.pool(), chunks)
    }
}
