//! Record batches to chunks: rows are staged until a chunk is full, then ordered and shipped.
//!
//! ```text
//! push --encode--> staging | row | row | row |  --full: order, rule--> chunk
//! ```

use arrow_array::RecordBatch;

use super::{Arranger, Builder, Chunk, Finish, OFFSET_BYTES};
use crate::error::Result;
use crate::order::{Layout, Rule};
use crate::pool::{Buffer, Pool};
use crate::rows::{Encoder, Prepared, RowSlice};

/// Rows staged at the most: their indexes and scratch words stay beside them in the cache.
const MOST_ROWS: usize = 1 << 16;

/// Turns record batches into chunks; accumulates across calls.
#[derive(Debug)]
pub(crate) struct Chunker {
    pool: Pool,
    layout: Layout,
    encoder: Encoder,
    staging: Option<Buffer>,
    offsets: Vec<u32>,
    /// Empty between calls; keeps its memory.
    rows: Vec<&'static [u8]>,
    arranger: Arranger,
    builder: Builder,
}

impl Chunker {
    pub(crate) fn new(layout: &Layout, pool: &Pool) -> Self {
        Self {
            pool: pool.clone(),
            layout: layout.clone(),
            encoder: Encoder::new(layout),
            staging: None,
            offsets: vec![0],
            rows: Vec::new(),
            arranger: Arranger::default(),
            builder: Builder::new(layout, pool, Finish::Log),
        }
    }

    /// The next finished chunk.
    pub(crate) fn take(&mut self) -> Option<Chunk> {
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
            let room = self.staging.as_ref().map_or(0, |buffer| buffer.len());
            let used = self.used();
            let staged = self.offsets.len() - 1;
            let mut end = used;
            let mut fit = 0;
            while next + fit < prepared.len() && staged + fit < MOST_ROWS {
                let longer = end + prepared.row_len(next + fit);
                if longer + (staged + fit + 1) * OFFSET_BYTES > room {
                    break;
                }
                end = longer;
                fit += 1;
                self.offsets.push(end as u32);
            }
            if fit == 0 {
                self.ship()?;
                let needed = prepared.row_len(next) + OFFSET_BYTES;
                self.staging = Some(self.pool.buffer(needed)?);
                continue;
            }
            if let Some(staging) = &mut self.staging {
                self.encoder.encode(prepared, next..next + fit, &mut staging[used..end]);
            }
            next += fit;
        }
        Ok(next)
    }

    /// Orders and ships what is staged, and whatever is not full.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.ship()
    }

    fn used(&self) -> usize {
        *self.offsets.last().unwrap_or(&0) as usize
    }

    fn ship(&mut self) -> Result<()> {
        let Some(staging) = self.staging.take() else { return Ok(()) };
        if self.offsets.len() == 1 {
            self.pool.recycle(staging);
            return Ok(());
        }
        let staged = RowSlice { bytes: &staging, offsets: &self.offsets };
        let mut rows: Vec<&[u8]> = std::mem::take(&mut self.rows);
        rows.extend((0..staged.len()).map(|index| staged.row(index)));
        let order = self.arranger.order(&rows, self.layout.tail().len());
        let handed_over = self.layout.rule() == Rule::Keep && order.is_sorted();
        if !handed_over {
            self.builder.restart();
            self.builder.push(&rows, order)?;
            self.builder.flush();
        }
        rows.clear();
        // Nothing is left to outlive the staging buffer; collecting in place keeps the allocation.
        self.rows = rows.into_iter().map(|_| -> &'static [u8] { &[] }).collect();
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        if handed_over {
            self.builder.hand_over(Chunk::new(&self.pool, staging, offsets));
        } else {
            self.pool.recycle(staging);
            self.offsets = offsets;
            self.offsets.truncate(1);
        }
        Ok(())
    }
}
