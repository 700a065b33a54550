//! Chunks: sorted rows, the unit that is merged, spilled and handed over.
//!
//! ```text
//! buffer   | row 0 | row 1 | ... | row n-1 |       room for the offsets, used when it is spilled
//! offsets  0       o1                      used
//! ```
//!
//! Invariant: a chunk is not empty; its rows ascend strictly under the layout, tails aside; under
//! the rules that keep one row of a key, no two rows have the same key; it holds at most the pool's
//! chunk size, or one row.

mod arrange;
mod builder;
mod chunker;

pub(crate) use arrange::Arranger;
pub use builder::Finish;
pub(crate) use builder::{Builder, Findings, describe};
pub(crate) use chunker::Chunker;

use crate::error::{Error, Result};
use crate::pool::{Buffer, Extent, Lease, Pool};
use crate::rows::RowSlice;

/// Bytes that the end of a row takes when a chunk is spilled.
pub(crate) const OFFSET_BYTES: usize = 4;

/// Sorted rows in memory.
#[derive(Debug)]
pub(crate) struct Chunk {
    pool: Pool,
    /// Taken when the chunk drops, to be recycled.
    buffer: Option<Buffer>,
    offsets: Vec<u32>,
    /// For the offsets; the buffer has its own.
    lease: Lease,
}

impl Chunk {
    pub(crate) fn new(pool: &Pool, buffer: Buffer, mut offsets: Vec<u32>) -> Self {
        debug_assert!(offsets.len() > 1, "a chunk is not empty");
        offsets.shrink_to_fit();
        let lease = pool.budget().lease(size_of_val(&offsets[..]));
        Self { pool: pool.clone(), buffer: Some(buffer), offsets, lease }
    }

    pub(crate) fn rows(&self) -> RowSlice<'_> {
        let bytes = self.buffer.as_ref().map_or(&[][..], |buffer| &buffer[..]);
        RowSlice { bytes, offsets: &self.offsets }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Bytes of memory that the chunk holds.
    pub(crate) fn leased_bytes(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len()) + self.lease.bytes()
    }

    /// Writes the chunk out; its memory is free again.
    pub(crate) fn spill(mut self) -> Result<SpilledChunk> {
        let used = *self.offsets.last().unwrap_or(&0) as usize;
        let rows = self.len();
        let end = used + rows * OFFSET_BYTES;
        let Some(mut buffer) = self.buffer.take() else {
            return Err(corrupt("a chunk without memory"));
        };
        for (target, offset) in buffer[used..end].chunks_exact_mut(4).zip(&self.offsets[1..]) {
            target.copy_from_slice(&offset.to_le_bytes());
        }
        let extent = self.pool.store(&buffer[..end])?;
        self.pool.recycle(buffer);
        Ok(SpilledChunk { extent, rows })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.recycle(buffer);
        }
    }
}

/// Sorted rows on disk.
#[derive(Debug)]
pub(crate) struct SpilledChunk {
    extent: Extent,
    rows: usize,
}

impl SpilledChunk {
    /// Reads the chunk back.
    pub(crate) fn load(&self, pool: &Pool) -> Result<Chunk> {
        let buffer = pool.load(&self.extent)?;
        let used = self
            .extent
            .len()
            .checked_sub(self.rows * OFFSET_BYTES)
            .ok_or_else(|| corrupt("fewer bytes than offsets"))?;
        let mut offsets = Vec::with_capacity(self.rows + 1);
        offsets.push(0);
        let ends = buffer[used..self.extent.len()].chunks_exact(OFFSET_BYTES);
        offsets.extend(ends.map(|end| u32::from_le_bytes([end[0], end[1], end[2], end[3]])));
        if !offsets.is_sorted() || offsets.last() != Some(&(used as u32)) {
            return Err(corrupt("row offsets that do not ascend to the end"));
        }
        Ok(Chunk::new(pool, buffer, offsets))
    }

    pub(crate) fn prefetch(&self, pool: &Pool) {
        pool.prefetch(&self.extent);
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "spilled chunk".into(), message: message.into() }
}
