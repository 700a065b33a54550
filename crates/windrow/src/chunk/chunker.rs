//! Record batches to chunks: rows are staged until a chunk is full, then ordered and shipped.
//!
//! ```text
//! push --encode--> staging | row | row | row |  --full: order, rule--> chunk
//!                                               --in order already---> chunk, the staging itself
//! ```

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::{Arranger, Builder, Chunk, Finish, OFFSET_BYTES, Starts, View, Wraps};
use crate::error::Result;
use crate::kernel::merge::ascends;
use crate::order::{Layout, Rule};
use crate::pool::{Buffer, Pool};
use crate::rows::decode::diff_of;
use crate::rows::{Encoder, Prepared, key_len};

/// Rows staged at the most: their indexes and scratch words stay beside them in the cache.
const MOST_ROWS: usize = 1 << 16;

/// Turns record batches into chunks; accumulates across calls.
#[derive(Debug)]
pub(crate) struct Chunker {
    pool: Pool,
    layout: Layout,
    encoder: Encoder,
    staging: Option<Buffer>,
    staged: usize,
    used: usize,
    /// Where staged rows start, unless they have one length.
    starts: Vec<u32>,
    /// Empty between calls; keeps its memory.
    rows: Vec<&'static [u8]>,
    arranger: Arranger,
    builder: Builder,
}

impl Chunker {
    /// A chunker that notes sums which do not fit in `wraps`.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps) -> Self {
        Self {
            pool: pool.clone(),
            layout: layout.clone(),
            encoder: Encoder::new(layout),
            staging: None,
            staged: 0,
            used: 0,
            starts: vec![0],
            rows: Vec::new(),
            arranger: Arranger::default(),
            builder: Builder::new(layout, pool, Finish::Log, wraps),
        }
    }

    /// The next finished chunk.
    pub(crate) fn take(&mut self) -> Option<Arc<Chunk>> {
        self.builder.take()
    }

    /// Resolves the columns of `batch`, the first row of which is number `sequence` of the input.
    pub(crate) fn prepare(&self, batch: &RecordBatch, sequence: u64) -> Result<Prepared> {
        self.encoder.prepare(batch, sequence)
    }

    /// Stages rows from `next` on, until chunks are full: they are then there to [`Chunker::take`].
    /// Returns the first row that is not staged yet. After an error rows are lost.
    pub(crate) fn push(&mut self, prepared: &Prepared, mut next: usize) -> Result<usize> {
        while next < prepared.len() && !self.builder.is_full() {
            let (fit, end) = self.fitting(prepared, next);
            if fit == 0 {
                self.ship()?;
                if self.builder.is_full() {
                    // What was shipped makes room for more once it is collected.
                    break;
                }
                let needed = prepared.row_len(next) + OFFSET_BYTES;
                self.staging = Some(self.pool.buffer(needed)?);
                continue;
            }
            if let Some(staging) = &mut self.staging {
                self.encoder.encode(prepared, next..next + fit, &mut staging[self.used..end]);
            }
            (self.used, self.staged) = (end, self.staged + fit);
            next += fit;
        }
        Ok(next)
    }

    /// How many rows from `next` on can be staged, and where they end; notes where they start.
    fn fitting(&mut self, prepared: &Prepared, next: usize) -> (usize, usize) {
        let room = self.staging.as_ref().map_or(0, |buffer| buffer.len());
        let most = (MOST_ROWS - self.staged).min(prepared.len() - next);
        if let Some(stride) = self.layout.stride() {
            let fit = most.min((room - self.used) / stride);
            return (fit, self.used + fit * stride);
        }
        let (mut fit, mut end) = (0, self.used);
        while fit < most {
            let longer = end + prepared.row_len(next + fit);
            if longer + (self.staged + fit + 1) * OFFSET_BYTES > room {
                break;
            }
            end = longer;
            fit += 1;
            self.starts.push(end as u32);
        }
        (fit, end)
    }

    /// Orders and ships what is staged, and whatever is not full.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.ship()
    }

    fn ship(&mut self) -> Result<()> {
        let Some(staging) = self.staging.take() else { return Ok(()) };
        let used = std::mem::take(&mut self.used);
        if std::mem::take(&mut self.staged) == 0 {
            self.pool.recycle(staging);
            return Ok(());
        }
        let starts = match self.layout.stride() {
            Some(stride) => Starts::Every(stride),
            None => Starts::At(&self.starts),
        };
        let staged = View { bytes: &staging[..used], starts };
        if is_chunk(&self.layout, staged) {
            let chunk = match self.layout.stride() {
                Some(stride) => Chunk::strided(&self.pool, staging, used, stride),
                None => {
                    let starts = std::mem::replace(&mut self.starts, vec![0]);
                    Chunk::varying(&self.pool, staging, starts)
                }
            };
            self.builder.hand_over(chunk);
            return Ok(());
        }
        let mut rows: Vec<&[u8]> = std::mem::take(&mut self.rows);
        rows.extend((0..staged.len()).map(|index| staged.row(index)));
        let order = self.arranger.order(&rows, self.layout.tail().len());
        self.builder.restart();
        self.builder.push(|index| staged.row(index), order, false)?;
        self.builder.flush();
        rows.clear();
        // Nothing is left to outlive the staging buffer; collecting in place keeps the allocation.
        self.rows = rows.into_iter().map(|_| -> &'static [u8] { &[] }).collect();
        self.pool.recycle(staging);
        self.starts.truncate(1);
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
