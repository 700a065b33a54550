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

use arrow_array::RecordBatch;

use super::{Arranger, Builder, Chunk, Finish, OFFSET_BYTES, Starts, View, Wraps};
use crate::error::Result;
use crate::kernel::merge::{ascends, ascends_varying};
use crate::kernel::prefetch::Ahead;
use crate::order::{Layout, Rule};
use crate::pool::{Buffer, Pool};
use crate::rows::{Behind, Encoder, PlainEncoder, Prepared, key_len};

/// Rows staged at the most: their indexes and scratch words stay beside them in the cache.
const MOST_ROWS: usize = 1 << 16;
/// Longer record batches of numbers are made ready where a chunk is larger than the second-level
/// cache, as it may be with a limit to memory: the kernels go over all rows for every eight
/// columns.
const FEW_ROWS: usize = 1 << 11;
/// Bytes of rows that are looked at together whether they are in order, while the first-level cache holds them.
const LOOK_BYTES: usize = 8 << 10;
/// Longer record batches with text are made ready.
const FEW_TEXTS: usize = 1 << 9;

/// Turns record batches into runs of chunks; accumulates across calls.
#[derive(Debug)]
pub(crate) struct Chunker {
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

/// Rows in the order in which they came.
#[derive(Debug)]
struct Staged {
    buffer: Buffer,
    used: usize,
    rows: usize,
    /// Where rows start, and where the last one ends; nothing if they have one length.
    starts: Vec<u32>,
    /// The first so many rows are in order, and the rule would leave them as they are; nothing if those behind
    /// are not.
    ordered: Option<usize>,
    /// Bytes of the rows that were looked at for that.
    looked: usize,
}

impl Staged {
    fn view(&self, stride: Option<usize>) -> View<'_> {
        let starts = stride.map_or(Starts::At(&self.starts), Starts::Every);
        View { bytes: &self.buffer[..self.used], starts }
    }

    /// Looks at the rows behind those that are known to be in order: true if they go on so.
    fn look(&mut self, layout: &Layout) -> bool {
        if let Some(known) = self.ordered
            && known < self.rows
        {
            let rows = self.view(layout.stride()).part(known.saturating_sub(1)..self.rows);
            self.ordered = is_ordered(layout, rows).then_some(self.rows);
            self.looked = self.used;
        }
        self.ordered.is_some()
    }
}

impl Chunker {
    /// A chunker that notes sums which do not fit in `wraps`.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps) -> Self {
        Self {
            desk: Desk::of(layout, pool),
            staged: Vec::new(),
            rows: 0,
            builder: Builder::new(layout, pool, Finish::Log, wraps),
            runs: VecDeque::new(),
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

    /// The chunks of the next finished run.
    pub(crate) fn take(&mut self) -> Option<Vec<Arc<Chunk>>> {
        self.runs.pop_front()
    }

    /// Stages rows of a record batch of nothing but numbers and text from row `next` on, if it is one and that
    /// is worth while, until a run is there to [`Chunker::take`]. Returns the first row that is not staged yet;
    /// nothing if the rest is to be made ready. After an error rows are lost.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`], and what ordering rows and taking memory report.
    pub(crate) fn push_plain(&mut self, batch: &RecordBatch, next: usize) -> Result<Option<usize>> {
        let stride = self.builder.layout().stride();
        let few = if stride.is_none() {
            FEW_TEXTS
        } else if self.builder.pool().budget().is_limited() {
            FEW_ROWS
        } else {
            usize::MAX
        };
        if self.desk.plain.is_none() || batch.num_rows() > few {
            return Ok(None);
        }
        let mut is_new = self.staged.is_empty();
        if is_new {
            self.stage(stride.unwrap_or(1))?;
        }
        loop {
            let rows = next..batch.num_rows().min(next + MOST_ROWS - self.rows);
            match self.write_plain(batch, rows)? {
                Some(0) if next < batch.num_rows() => {}
                Some(written) => return Ok(Some(next + written)),
                None => return Ok(None),
            }
            if is_new {
                // A row that is longer than a chunk.
                return Ok(None);
            }
            self.close()?;
            if !self.runs.is_empty() {
                // What was shipped makes room for more once it is collected.
                return Ok(Some(next));
            }
            self.stage(stride.unwrap_or(1))?;
            is_new = true;
        }
    }

    /// Writes as many of `rows` of a record batch behind what is staged as there is room for; how many. Nothing
    /// if they are to be made ready.
    fn write_plain(
        &mut self,
        batch: &RecordBatch,
        mut rows: Range<usize>,
    ) -> Result<Option<usize>> {
        let (Some(staged), Some(plain)) = (self.staged.last_mut(), &mut self.desk.plain) else {
            return Ok(None);
        };
        let Staged { buffer, used, starts, .. } = staged;
        let written = if let Some(stride) = self.builder.layout().stride() {
            let room = buffer.len() - *used;
            // Hardly ever divided.
            if rows.len() * stride > room {
                rows.end = rows.start + room / stride;
            }
            let end = *used + rows.len() * stride;
            let out = &mut buffer[*used..end];
            plain.write(batch, rows.clone(), out)?.then(|| (rows.len(), end))
        } else {
            let mut behind = Behind { bytes: buffer, starts, spare: OFFSET_BYTES };
            let written = plain.write_varying(batch, rows, &mut behind)?;
            written.map(|written| (written, behind.starts.last().map_or(0, |&end| end as usize)))
        };
        let Some((written, end)) = written else { return Ok(None) };
        (staged.used, staged.rows) = (end, staged.rows + written);
        if staged.used - staged.looked >= LOOK_BYTES {
            staged.look(self.builder.layout());
        }
        self.rows += written;
        Ok(Some(written))
    }

    /// Resolves the columns of `batch`, the first row of which is number `sequence` of the input.
    pub(crate) fn prepare(&mut self, batch: &RecordBatch, sequence: u64) -> Result<Prepared> {
        self.desk.encoder(self.builder.layout()).prepare(batch, sequence)
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
                self.desk.encoder(self.builder.layout()).encode(prepared, next..next + fit, out);
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
        if let Some(stride) = self.builder.layout().stride() {
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
        let buffer = self.builder.pool().buffer(len)?;
        let starts = match self.builder.layout().stride() {
            Some(_) => Vec::new(),
            None => self.builder.pool().starts(),
        };
        self.staged.push(Staged { buffer, used: 0, rows: 0, starts, ordered: Some(0), looked: 0 });
        Ok(())
    }

    /// Nothing is added to the last buffer any more: it is a chunk, or is ordered with the others.
    fn close(&mut self) -> Result<()> {
        let stride = self.builder.layout().stride();
        let Some(last) = self.staged.pop_if(|last| last.look(self.builder.layout())) else {
            let bytes: usize = self.staged.iter().map(|staged| staged.buffer.len()).sum();
            let enough =
                bytes + self.builder.pool().chunk_bytes() > self.builder.pool().stage_bytes();
            return if enough || self.rows == MOST_ROWS { self.ship() } else { Ok(()) };
        };
        self.rows -= last.rows;
        self.ship()?;
        if last.rows == 0 {
            self.builder.pool().recycle(last.buffer);
            return Ok(());
        }
        let chunk = match stride {
            Some(stride) => Chunk::strided(self.builder.pool(), last.buffer, last.used, stride),
            None => Chunk::varying(self.builder.pool(), last.buffer, last.starts),
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
        let stride = self.builder.layout().stride();
        let parts: Vec<View<'_>> = staged.iter().map(|staged| staged.view(stride)).collect();
        self.builder.push_unordered(
            &mut self.desk.arranger,
            &parts,
            false,
            &mut Ahead::default(),
        )?;
        for Staged { buffer, starts, .. } in staged {
            self.builder.pool().recycle(buffer);
            self.builder.pool().recycle_starts(starts);
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
fn is_ordered(layout: &Layout, rows: View<'_>) -> bool {
    let (tail, sums) = (layout.tail().len(), layout.rule() == Rule::Sum);
    if !matches!(layout.rule(), Rule::First | Rule::Last) {
        let all = 0..rows.len();
        return match rows.strided(all.clone(), tail) {
            Some(rows) => ascends(rows, sums),
            None => rows.varying(all, tail).is_some_and(|rows| ascends_varying(rows, sums)),
        };
    }
    let body = |row: &'_ [u8]| row.len() - tail;
    let mut before = rows.row(0);
    (1..rows.len()).all(|index| {
        let row = rows.row(index);
        let ascends = before[..body(before)] < row[..body(row)];
        let repeats = row.starts_with(&before[..key_len(layout, before)]);
        before = row;
        ascends && !repeats
    })
}
