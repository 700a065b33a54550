//! Record batches to runs of chunks: rows are staged until there are enough of them, then ordered and shipped.
//!
//! ```text
//! push --plain, or prepared--> staged  | row | row | row |  --full, in order already--> run of one chunk
//!        ^                             | row | row | row |  --enough: order, rule-----> run of some chunks
//!      pending: small ones wait
//! ```
//! With a limit to memory one buffer is enough.

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
use crate::error::{Error, Result};
use crate::kernel::prefetch::Ahead;
use crate::order::Layout;
use crate::pool::Pool;
use crate::rows::{Behind, Encoder, PlainEncoder, Prepared};

/// Rows staged at the most: their indexes and scratch words stay beside them in the cache.
const MOST_ROWS: usize = 1 << 16;
/// Longer record batches of numbers are prepared where a chunk is larger than the second-level
/// cache, as it may be with a limit to memory: the kernels go over all rows for every eight
/// columns.
const FEW_ROWS: usize = 1 << 11;
/// Longer record batches with text are prepared.
const FEW_TEXTS: usize = 1 << 9;

/// Turns record batches into runs of chunks; accumulates across calls.
#[derive(Debug)]
pub(crate) struct Chunker {
    desk: Box<Desk>,
    pending: Pending,
    /// Buffers that are full, and the one that is being filled.
    staged: Vec<Staged>,
    /// Rows of all of them.
    rows: usize,
    builder: Builder,
}

/// Who takes the runs of a chunker.
pub(crate) trait Runs {
    /// Is called when rows are staged, or wait to be.
    fn open(&mut self, pool: &Pool);

    /// Takes the chunks of a run.
    fn take(&mut self, layout: &Layout, pool: &Pool, chunks: Vec<Arc<Chunk>>) -> Result<()>;
}

/// Why a record batch was not pushed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is not for this layout: no row of it was taken.
    Refused(Error),
    /// Rows are missing, its own or others.
    Lost(Error),
}

/// What a chunker works with. The pool keeps it for the next one, whose layout is mostly the same.
#[derive(Debug, Default)]
struct Desk {
    encoder: Option<Encoder>,
    plain: Option<PlainEncoder>,
    arranger: Arranger,
}

impl Desk {
    fn of(layout: &Layout, pool: &Pool) -> Box<Self> {
        let mut desk = pool.scratch::<Self>();
        if !desk.encoder.as_ref().is_some_and(|encoder| encoder.layout().is(layout)) {
            desk.encoder = Some(Encoder::new(layout));
            desk.plain = PlainEncoder::new(layout);
        }
        desk
    }

    /// The encoder of `layout`.
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

/// Rows of a record batch, to be staged.
trait Unstaged {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Bytes of room without which a row cannot be staged, or is for somebody else.
    fn room(&self, layout: &Layout, row: usize) -> usize;

    /// Writes as many of `rows` behind what is staged as there is room for; how many. Nothing if they are for somebody
    /// else.
    fn write(
        &self,
        desk: &mut Desk,
        layout: &Layout,
        staged: &mut Staged,
        rows: Range<usize>,
    ) -> Result<Option<usize>>;
}

/// Numbers and text without nulls, whose columns need not be resolved.
struct Plain<'a>(&'a RecordBatch);

impl Unstaged for Plain<'_> {
    fn len(&self) -> usize {
        self.0.num_rows()
    }

    fn room(&self, layout: &Layout, _row: usize) -> usize {
        layout.stride().unwrap_or(1)
    }

    fn write(
        &self,
        desk: &mut Desk,
        layout: &Layout,
        staged: &mut Staged,
        mut rows: Range<usize>,
    ) -> Result<Option<usize>> {
        let (Some(plain), used) = (&mut desk.plain, staged.used) else { return Ok(None) };
        let written = if let Some(stride) = layout.stride() {
            let room = staged.buffer.len() - used;
            // Hardly ever divided.
            if rows.len() * stride > room {
                rows.end = rows.start + room / stride;
            }
            let end = used + rows.len() * stride;
            let out = &mut staged.buffer[used..end];
            plain.write(self.0, rows.clone(), out)?.then(|| (rows.len(), end))
        } else {
            let Staged { buffer, starts, .. } = staged;
            let mut behind = Behind { bytes: buffer, starts, spare: OFFSET_BYTES };
            let written = plain.write_varying(self.0, rows, &mut behind)?;
            written.map(|written| (written, behind.starts.last().map_or(0, |&end| end as usize)))
        };
        let Some((written, end)) = written else { return Ok(None) };
        staged.add(layout, written, end);
        Ok(Some(written))
    }
}

/// Rows of any columns, which are resolved.
impl Unstaged for Prepared {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn room(&self, _layout: &Layout, row: usize) -> usize {
        self.row_len(row) + OFFSET_BYTES
    }

    fn write(
        &self,
        desk: &mut Desk,
        layout: &Layout,
        staged: &mut Staged,
        rows: Range<usize>,
    ) -> Result<Option<usize>> {
        let (room, used) = (staged.buffer.len(), staged.used);
        let (mut fit, mut end) = (0, used);
        if let Some(stride) = layout.stride() {
            fit = rows.len().min((room - used) / stride);
            end += fit * stride;
        } else {
            while fit < rows.len() {
                let longer = end + self.row_len(rows.start + fit);
                if longer + (staged.rows + fit + 1) * OFFSET_BYTES > room {
                    break;
                }
                (fit, end) = (fit + 1, longer);
                staged.starts.push(end as u32);
            }
        }
        let out = &mut staged.buffer[used..end];
        desk.encoder(layout).encode(self, rows.start..rows.start + fit, out);
        staged.add(layout, fit, end);
        Ok(Some(fit))
    }
}

impl Chunker {
    /// A chunker that notes sums which do not fit in `wraps`.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps) -> Self {
        Self {
            desk: Desk::of(layout, pool),
            pending: Pending::default(),
            staged: Vec::new(),
            rows: 0,
            builder: Builder::new(layout, pool, Finish::Log, wraps),
        }
    }

    /// The layout of the rows.
    pub(crate) fn layout(&self) -> &Layout {
        self.builder.layout()
    }

    /// The pool that chunks are made in.
    pub(crate) fn pool(&self) -> &Pool {
        self.builder.pool()
    }

    /// Takes the rows of `batch` in, the first of which is number `sequence` of the input. What is finished is handed to
    /// `runs` on the way, so that no more piles up than fits.
    pub(crate) fn push(
        &mut self,
        batch: &RecordBatch,
        sequence: u64,
        runs: &mut impl Runs,
    ) -> Result<(), Failure> {
        let mut next = 0;
        if self.pending.is_empty()
            && batch.num_rows() <= self.most_plain()
            && let Some(plain) = &mut self.desk.plain
        {
            plain.check_schema(batch.schema_ref()).map_err(Failure::Refused)?;
            next = self.stage(&Plain(batch), runs).map_err(Failure::Lost)?;
            if next == batch.num_rows() {
                return Ok(());
            }
        }
        if next == 0 {
            return self.push_any(batch, sequence, runs, Failure::Refused);
        }
        let rest = batch.slice(next, batch.num_rows() - next);
        // The rows in front of these are in already.
        self.push_any(&rest, sequence + next as u64, runs, Failure::Lost)
    }

    /// Rows of a record batch at the most that are written without resolving its columns.
    fn most_plain(&self) -> usize {
        match self.layout().stride() {
            None => FEW_TEXTS,
            Some(_) if self.pool().budget().is_limited() => FEW_ROWS,
            Some(_) => usize::MAX,
        }
    }

    /// Takes a record batch in whose columns are to be resolved, or has it wait.
    fn push_any(
        &mut self,
        batch: &RecordBatch,
        sequence: u64,
        runs: &mut impl Runs,
        refused: fn(Error) -> Failure,
    ) -> Result<(), Failure> {
        for _ in 0..2 {
            if self.pending.offer(self.builder.layout(), batch, sequence).map_err(refused)? {
                runs.open(self.pool());
                return Ok(());
            }
            self.push_pending(runs).map_err(Failure::Lost)?;
        }
        let layout = self.builder.layout();
        let prepared = self.desk.encoder(layout).prepare(batch, sequence).map_err(refused)?;
        self.stage(&prepared, runs).map_err(Failure::Lost)?;
        Ok(())
    }

    /// Stages the record batches that wait.
    fn push_pending(&mut self, runs: &mut impl Runs) -> Result<()> {
        if let Some((batch, sequence)) = self.pending.take()? {
            let prepared = self.desk.encoder(self.builder.layout()).prepare(&batch, sequence)?;
            self.stage(&prepared, runs)?;
        }
        Ok(())
    }

    /// Stages rows; returns the first that is not for this writer.
    fn stage(&mut self, rows: &impl Unstaged, runs: &mut impl Runs) -> Result<usize> {
        let (mut next, mut is_new) = (0, false);
        while next < rows.len() {
            let some = next..rows.len().min(next + MOST_ROWS - self.rows);
            let layout = self.builder.layout();
            let written = match self.staged.last_mut() {
                Some(staged) if !some.is_empty() => {
                    rows.write(&mut self.desk, layout, staged, some)?
                }
                _ => Some(0),
            };
            match written {
                None => break,
                // A row that is longer than a chunk.
                Some(0) if is_new => break,
                Some(0) => {
                    self.close(runs)?;
                    let (layout, pool) = (self.builder.layout(), self.builder.pool());
                    self.staged.push(Staged::new(layout, pool, rows.room(layout, next))?);
                    is_new = true;
                }
                Some(count) => {
                    runs.open(self.builder.pool());
                    (self.rows, next, is_new) = (self.rows + count, next + count, false);
                }
            }
        }
        Ok(next)
    }

    /// Orders and ships what is staged and what waits.
    pub(crate) fn flush(&mut self, runs: &mut impl Runs) -> Result<()> {
        self.push_pending(runs)?;
        self.close(runs)?;
        self.ship(runs)
    }

    /// Nothing is added to the last buffer any more: it is a chunk, or is ordered with the others.
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

    /// Orders what is staged.
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
