//! Record batches to chunks: rows are staged until there are enough of them, then ordered and shipped.
//!
//! ```text
//! push --encode--> staged  | row | row | row |  --full, in order already--> run of one chunk: the buffer
//!                          | row | row | row |  --enough: order, rule-----> run of some chunks
//! ```
//! With a limit to memory one buffer is enough.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};

use super::{Arranger, Builder, Chunk, Finish, OFFSET_BYTES, Starts, View, Wraps};
use crate::error::Result;
use crate::kernel::merge::ascends;
use crate::kernel::prefetch::Ahead;
use crate::order::{Layout, Rule};
use crate::pool::{Buffer, Pool};
use crate::rows::decode::diff_of;
use crate::rows::{Encoder, PlainEncoder, Prepared, key_len};

/// Rows staged at the most: their indexes and scratch words stay beside them in the cache.
const MOST_ROWS: usize = 1 << 16;
/// Longer record batches of numbers are made ready where a chunk is larger than the second-level
/// cache, as it may be with a limit to memory: the kernels go over all rows for every eight
/// columns.
const FEW_ROWS: usize = 1 << 11;
/// Longer record batches with text are made ready.
const FEW_TEXTS: usize = 1 << 9;

/// Turns record batches into runs of chunks; accumulates across calls.
#[derive(Debug)]
pub(crate) struct Chunker {
    pool: Pool,
    layout: Layout,
    encoder: Encoder,
    desk: Box<Desk>,
    /// Buffers that are full, and the one that is being filled.
    staged: Vec<Staged>,
    /// Rows of all of them.
    rows: usize,
    builder: Builder,
    runs: VecDeque<Vec<Arc<Chunk>>>,
}

/// What a chunker works with. The pool keeps it for the next one, whose layout is mostly the same.
#[derive(Debug, Default)]
struct Desk {
    plain: Option<PlainEncoder>,
    arranger: Arranger,
}

impl Desk {
    fn of(layout: &Layout, pool: &Pool) -> Box<Self> {
        let mut desk = pool.scratch::<Self>();
        if !desk.plain.as_ref().is_some_and(|plain| plain.layout().is(layout)) {
            desk.plain = PlainEncoder::new(layout);
        }
        desk
    }
}

impl Drop for Chunker {
    fn drop(&mut self) {
        self.pool.keep_scratch(std::mem::take(&mut self.desk));
    }
}

/// Rows in the order in which they came.
#[derive(Debug)]
struct Staged {
    buffer: Buffer,
    used: usize,
    rows: usize,
    /// Where rows start, and where the last one ends; only the zero if they have one length.
    starts: Vec<u32>,
}

impl Staged {
    fn view(&self, stride: Option<usize>) -> View<'_> {
        let starts = stride.map_or(Starts::At(&self.starts), Starts::Every);
        View { bytes: &self.buffer[..self.used], starts }
    }
}

impl Chunker {
    /// A chunker that notes sums which do not fit in `wraps`.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps) -> Self {
        Self {
            pool: pool.clone(),
            layout: layout.clone(),
            encoder: Encoder::new(layout),
            desk: Desk::of(layout, pool),
            staged: Vec::new(),
            rows: 0,
            builder: Builder::new(layout, pool, Finish::Log, wraps),
            runs: VecDeque::new(),
        }
    }

    /// The chunks of the next finished run.
    pub(crate) fn take(&mut self) -> Option<Vec<Arc<Chunk>>> {
        self.runs.pop_front()
    }

    /// Stages a record batch of nothing but numbers and text, if it is one and that is worth while; then a run
    /// may be there to [`Chunker::take`]. Nothing is staged of one that is not. After an error rows are lost.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`], and what ordering rows and taking memory report.
    pub(crate) fn push_plain(&mut self, batch: &RecordBatch) -> Result<bool> {
        if self.desk.plain.is_none() {
            return Ok(false);
        }
        match self.layout.stride() {
            Some(stride) => self.push_numbers(batch, stride),
            None => self.push_texts(batch),
        }
    }

    /// As [`Chunker::push_plain`], of rows that vary: such as fit where there is room.
    fn push_texts(&mut self, batch: &RecordBatch) -> Result<bool> {
        let rows = batch.num_rows();
        if rows > FEW_TEXTS || rows > MOST_ROWS - self.rows {
            return Ok(false);
        }
        if self.staged.is_empty() {
            self.stage(1)?;
        }
        let (Some(staged), Some(plain)) = (self.staged.last_mut(), &mut self.desk.plain) else {
            return Ok(false);
        };
        let written =
            plain.write_varying(batch, &mut staged.buffer, &mut staged.starts, OFFSET_BYTES)?;
        if written {
            let end = staged.starts.last().map_or(0, |&end| end as usize);
            (staged.used, staged.rows) = (end, staged.rows + rows);
            self.rows += rows;
        }
        Ok(written)
    }

    /// As [`Chunker::push_plain`], of rows of `stride` bytes.
    fn push_numbers(&mut self, batch: &RecordBatch, stride: usize) -> Result<bool> {
        let rows = batch.num_rows();
        // With a limit a chunk that is done is collected before more is taken.
        let limited = self.pool.budget().is_limited();
        if limited && rows > FEW_ROWS {
            return Ok(false);
        }
        if self.staged.is_empty() {
            self.stage(stride)?;
        }
        if self.room(stride) >= rows {
            return self.write_numbers(batch, 0..rows, stride);
        }
        if limited || batch.columns().iter().any(|column| column.null_count() > 0) {
            return Ok(false);
        }
        let mut done = 0;
        loop {
            let end = rows.min(done + self.room(stride));
            if !self.write_numbers(batch, done..end, stride)? {
                return Ok(false);
            }
            done = end;
            if done == rows {
                return Ok(true);
            }
            self.close()?;
            self.stage(stride)?;
        }
    }

    /// Rows of `stride` bytes that can be staged where there is room.
    fn room(&self, stride: usize) -> usize {
        let room = self.staged.last().map_or(0, |last| (last.buffer.len() - last.used) / stride);
        room.min(MOST_ROWS - self.rows)
    }

    /// Writes `rows` of a record batch behind what is staged, where there is room for them.
    fn write_numbers(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        stride: usize,
    ) -> Result<bool> {
        let (Some(staged), Some(plain)) = (self.staged.last_mut(), &mut self.desk.plain) else {
            return Ok(false);
        };
        let (count, used) = (rows.len(), staged.used + rows.len() * stride);
        let written = plain.write(batch, rows, &mut staged.buffer[staged.used..used])?;
        if written {
            (staged.used, staged.rows) = (used, staged.rows + count);
            self.rows += count;
        }
        Ok(written)
    }

    /// Resolves the columns of `batch`, the first row of which is number `sequence` of the input.
    pub(crate) fn prepare(&self, batch: &RecordBatch, sequence: u64) -> Result<Prepared> {
        self.encoder.prepare(batch, sequence)
    }

    /// Stages rows from `next` on, until a run is there to [`Chunker::take`]. Returns the first row that
    /// is not staged yet. After an error rows are lost.
    pub(crate) fn push(&mut self, prepared: &Prepared, mut next: usize) -> Result<usize> {
        while next < prepared.len() && self.runs.is_empty() {
            let (fit, end) = self.fitting(prepared, next);
            if fit == 0 {
                self.close()?;
                if !self.runs.is_empty() {
                    // What was shipped makes room for more once it is collected.
                    break;
                }
                self.stage(prepared.row_len(next) + OFFSET_BYTES)?;
                continue;
            }
            if let Some(staged) = self.staged.last_mut() {
                let out = &mut staged.buffer[staged.used..end];
                self.encoder.encode(prepared, next..next + fit, out);
                (staged.used, staged.rows) = (end, staged.rows + fit);
            }
            self.rows += fit;
            next += fit;
        }
        Ok(next)
    }

    /// How many rows from `next` on can be staged where there is room, and where they end; notes where
    /// they start.
    fn fitting(&mut self, prepared: &Prepared, next: usize) -> (usize, usize) {
        let Some(staged) = self.staged.last_mut() else { return (0, 0) };
        let room = staged.buffer.len();
        let most = (MOST_ROWS - self.rows).min(prepared.len() - next);
        if let Some(stride) = self.layout.stride() {
            let fit = most.min((room - staged.used) / stride);
            return (fit, staged.used + fit * stride);
        }
        let (mut fit, mut end) = (0, staged.used);
        while fit < most {
            let longer = end + prepared.row_len(next + fit);
            if longer + (staged.rows + fit + 1) * OFFSET_BYTES > room {
                break;
            }
            end = longer;
            fit += 1;
            staged.starts.push(end as u32);
        }
        (fit, end)
    }

    /// Orders and ships what is staged.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.close()?;
        self.ship()
    }

    /// A buffer to be filled, for a row of `len` bytes at the least.
    fn stage(&mut self, len: usize) -> Result<()> {
        let buffer = self.pool.buffer(len)?;
        let starts = if self.layout.stride().is_some() { vec![0] } else { self.pool.starts() };
        self.staged.push(Staged { buffer, used: 0, rows: 0, starts });
        Ok(())
    }

    /// Nothing is added to the last buffer any more: it is a chunk, or is ordered with the others.
    fn close(&mut self) -> Result<()> {
        let stride = self.layout.stride();
        let Some(last) =
            self.staged.pop_if(|last| last.rows == 0 || is_chunk(&self.layout, last.view(stride)))
        else {
            let bytes: usize = self.staged.iter().map(|staged| staged.buffer.len()).sum();
            let enough = bytes + self.pool.chunk_bytes() > self.pool.stage_bytes();
            return if enough || self.rows == MOST_ROWS { self.ship() } else { Ok(()) };
        };
        self.rows -= last.rows;
        self.ship()?;
        if last.rows == 0 {
            self.pool.recycle(last.buffer);
            return Ok(());
        }
        let chunk = match stride {
            Some(stride) => Chunk::strided(&self.pool, last.buffer, last.used, stride),
            None => Chunk::varying(&self.pool, last.buffer, last.starts),
        };
        self.runs.push_back(vec![Arc::new(chunk)]);
        Ok(())
    }

    fn ship(&mut self) -> Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.rows = 0;
        let staged = std::mem::take(&mut self.staged);
        self.builder.restart();
        let stride = self.layout.stride();
        let parts: Vec<View<'_>> = staged.iter().map(|staged| staged.view(stride)).collect();
        self.builder.push_unordered(
            &mut self.desk.arranger,
            &parts,
            false,
            &mut Ahead::default(),
        )?;
        for Staged { buffer, starts, .. } in staged {
            self.pool.recycle(buffer);
            self.pool.recycle_starts(starts);
        }
        self.builder.flush();
        let run: Vec<_> = std::iter::from_fn(|| self.builder.take()).collect();
        if !run.is_empty() {
            self.runs.push_back(run);
        }
        Ok(())
    }
}

/// True if rows are in order and the rule would leave them as they are. Rows in no order are found
/// out by the first few.
fn is_chunk(layout: &Layout, rows: View<'_>) -> bool {
    let tail = layout.tail().len();
    let body = |row: &'_ [u8]| row.len() - tail;
    let rule = layout.rule();
    if rule == Rule::Sum && diff_of(rows.row(0)) == 0 {
        return false;
    }
    if let (Rule::Keep | Rule::Sum, Some(strided)) = (rule, rows.strided(0..rows.len(), tail))
        && strided.body >= 8
    {
        return ascends(strided, rule == Rule::Sum);
    }
    let mut before = rows.row(0);
    for index in 1..rows.len() {
        let row = rows.row(index);
        let stays = match rule {
            Rule::Keep => true,
            Rule::First | Rule::Last => !row.starts_with(&before[..key_len(layout, before)]),
            Rule::Sum => diff_of(row) != 0,
        };
        if before[..body(before)] >= row[..body(row)] || !stays {
            return false;
        }
        before = row;
    }
    true
}
