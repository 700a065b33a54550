//! Appends rows one after the other and cuts them into chunks.
//!
//! ```text
//! append, append_run, merged_into  -->  | row | row | row |  --full--> chunk, chunk, ...
//!                                                                        ^
//! pass  whole chunks as they are  ---------------------------------------+
//! ```
//!
//! The output is graded: any three neighbouring chunks together exceed the chunk size, but for a
//! few. So a chunk is passed on unchanged if it does not fit after the rows in the buffer, or is
//! half full. Of smaller chunks, the first few are passed on and the rest are copied.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::arrange::Place;
use super::block::Block;
use super::resident::{Chunk, OFFSET_BYTES};
use super::view::View;
use windrow_kernel::copy::{copy_rows, copy_short, gather};
use windrow_kernel::merge::Target;
use windrow_kernel::prefetch::{Ahead, prefetch_row};
use windrow_pool::{Buffer, Pool};
use windrow_rows::{Layout, Result};

/// Small chunks of a run that are passed on rather than copied: two batches of one chunk each, the
/// size of a few thousand rows, merge without a copy if they do not overlap.
pub(crate) const FEW_SMALL: usize = 2;

/// Rows copied between prefetches.
const SOME: usize = 16;
/// Bytes copied for each prefetched cache line.
const LINE: usize = 64;

/// Finished chunks, and the current one.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) pool: Pool,
    stride: Option<usize>,
    buffer: Option<Buffer>,
    used: usize,
    /// Row starts, then the end of the last row; empty if rows have one length.
    starts: Vec<u32>,
    /// Finished chunks in order; mostly one at a time.
    done: SmallVec<[Arc<Chunk>; 1]>,
    /// Small chunks passed on so far.
    small: usize,
}

impl Output {
    pub(super) fn new(layout: &Layout, pool: &Pool) -> Self {
        Self {
            pool: pool.clone(),
            stride: layout.stride(),
            buffer: None,
            used: 0,
            starts: if layout.stride().is_some() { Vec::new() } else { pool.starts() },
            done: SmallVec::new(),
            small: 0,
        }
    }

    /// Returns the next full chunk.
    pub(super) fn take(&mut self) -> Option<Arc<Chunk>> {
        if self.done.is_empty() { None } else { Some(self.done.remove(0)) }
    }

    /// Returns true if [`Output::take`] has a chunk.
    pub(super) fn is_full(&self) -> bool {
        !self.done.is_empty()
    }

    /// Returns the free bytes of the current buffer.
    fn room(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len() - self.used)
    }

    /// Returns the bytes of the row starts, with `more` further rows.
    fn start_bytes(&self, more: usize) -> usize {
        if self.stride.is_some() { 0 } else { (self.starts.len() - 1 + more) * OFFSET_BYTES }
    }

    #[inline(always)]
    pub(super) fn append(&mut self, row: &[u8]) -> Result<()> {
        if row.len() + self.start_bytes(1) > self.room() {
            self.next_buffer(row.len() + OFFSET_BYTES)?;
        }
        if let Some(buffer) = &mut self.buffer {
            copy_short(&mut buffer[self.used..], row);
        }
        self.used += row.len();
        if self.stride.is_none() {
            self.starts.push(self.used as u32);
        }
        Ok(())
    }

    /// Appends rows of `block` in the order of `order`, up to the first for which `keep` is false.
    /// Returns their number. Prefetches memory `ahead`.
    #[inline]
    pub(super) fn append_while<'a>(
        &mut self,
        block: impl Block<'a>,
        order: &[Place],
        keep: impl Fn(&[u8]) -> bool,
        ahead: &mut Ahead<'_>,
    ) -> Result<usize> {
        let Some(table) = block.table() else {
            return self.append_varying(block, order, keep, ahead);
        };
        let stride = table.stride;
        let mut done = 0;
        while done < order.len() {
            if self.room() < stride {
                self.next_buffer(stride)?;
            }
            let fit = (self.room() / stride).min(order.len() - done).min(SOME);
            ahead.ask((fit * stride).div_ceil(LINE));
            let indexes = order[done..done + fit].iter().map(|place| place.index());
            let Some(buffer) = &mut self.buffer else { break };
            let copied = gather(table, indexes, &keep, &mut buffer[self.used..]);
            self.used += copied * stride;
            done += copied;
            if copied < fit {
                break;
            }
        }
        Ok(done)
    }

    /// Does the same as [`Output::append_while`] for variable-length rows.
    fn append_varying<'a>(
        &mut self,
        block: impl Block<'a>,
        order: &[Place],
        keep: impl Fn(&[u8]) -> bool,
        ahead: &mut Ahead<'_>,
    ) -> Result<usize> {
        for (some, places) in order.chunks(SOME).enumerate() {
            let mut rows: [&[u8]; SOME] = [&[]; SOME];
            for (row, place) in rows.iter_mut().zip(places) {
                *row = block.row(place.index());
                prefetch_row(row);
            }
            let rows = &rows[..places.len()];
            let kept = rows.iter().position(|row| !keep(row)).unwrap_or(rows.len());
            let bytes = self.append_rows(&rows[..kept])?;
            ahead.ask(bytes.div_ceil(LINE));
            if kept < rows.len() {
                return Ok(some * SOME + kept);
            }
        }
        Ok(order.len())
    }

    /// Appends some variable-length rows and returns their bytes.
    fn append_rows(&mut self, rows: &[&[u8]]) -> Result<usize> {
        let bytes = rows.iter().map(|row| row.len()).sum::<usize>();
        let fits = bytes + self.start_bytes(rows.len()) <= self.room();
        if fits && let Some(buffer) = &mut self.buffer {
            copy_rows(&mut buffer[self.used..], rows);
            for row in rows {
                self.used += row.len();
                self.starts.push(self.used as u32);
            }
        } else {
            rows.iter().try_for_each(|row| self.append(row))?;
        }
        Ok(bytes)
    }

    /// Replaces the diff of the last row.
    #[inline(always)]
    pub(super) fn set_diff(&mut self, diff: i64) {
        self.set_tail(&diff.to_le_bytes());
    }

    /// Replaces the tail of the last row.
    #[inline(always)]
    pub(super) fn set_tail(&mut self, tail: &[u8]) {
        let used = self.used;
        if let Some(buffer) = &mut self.buffer {
            buffer[used - tail.len()..used].copy_from_slice(tail);
        }
    }

    /// Appends `range` of `rows` in order.
    pub(super) fn append_run(&mut self, rows: View<'_>, mut range: Range<usize>) -> Result<()> {
        while !range.is_empty() {
            let mut fit = rows.fitting(range.clone(), self.room());
            let bytes = |fit: usize| rows.start(range.start + fit) - rows.start(range.start);
            while fit > 0 && bytes(fit) + self.start_bytes(fit) > self.room() {
                fit -= fit.div_ceil(64);
            }
            if fit == 0 {
                self.next_buffer(rows.row(range.start).len() + OFFSET_BYTES)?;
                continue;
            }
            let (used, taken) = (self.used, range.start..range.start + fit);
            let bytes = rows.span(taken.clone());
            if let Some(buffer) = &mut self.buffer {
                buffer[used..used + bytes.len()].copy_from_slice(bytes);
            }
            if self.stride.is_none() {
                let base = rows.start(taken.start);
                let ends = (taken.start + 1..=taken.end).map(|at| rows.start(at) - base + used);
                self.starts.extend(ends.map(|end| end as u32));
            }
            self.used += bytes.len();
            range.start += fit;
        }
        Ok(())
    }

    /// Lets `write` fill the free bytes with fixed-length rows; there is space for at least `rows`
    /// rows. `write` returns the number of rows and a result for the caller.
    pub(super) fn merged_into<R>(
        &mut self,
        stride: usize,
        rows: usize,
        write: impl FnOnce(&mut [u8], &Pool) -> (usize, R),
    ) -> Result<Option<R>> {
        debug_assert_eq!(self.stride, Some(stride));
        if self.room() < rows * stride {
            self.next_buffer(rows * stride)?;
        }
        let used = self.used;
        let Some(buffer) = &mut self.buffer else { return Ok(None) };
        let (written, result) = write(&mut buffer[used..], &self.pool);
        self.used += written * stride;
        Ok(Some(result))
    }

    /// Lets `write` append variable-length rows, with at least `len` bytes free.
    pub(super) fn varying_into<R>(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut Target<'_>, &Pool) -> R,
    ) -> Result<Option<R>> {
        if len + self.start_bytes(1) > self.room() {
            self.next_buffer(len + OFFSET_BYTES)?;
        }
        let Some(buffer) = &mut self.buffer else { return Ok(None) };
        let mut target =
            Target { bytes: buffer, used: self.used, ends: &mut self.starts, spare: OFFSET_BYTES };
        let result = write(&mut target, &self.pool);
        self.used = target.used;
        Ok(Some(result))
    }

    /// Returns true if the caller must [`Output::pass`] `chunk` on instead of copying it.
    pub(super) fn passes(&mut self, chunk: &Chunk) -> bool {
        let starts = if self.stride.is_some() { 0 } else { chunk.len() * OFFSET_BYTES };
        let graded = if self.used == 0 {
            2 * (chunk.bytes() + starts) >= self.pool.chunk_bytes()
        } else {
            chunk.bytes() + starts + self.start_bytes(0) > self.room()
        };
        let few = !graded && self.small < FEW_SMALL;
        self.small += usize::from(few);
        graded || few
    }

    /// Appends a whole chunk without a copy.
    pub(super) fn pass(&mut self, chunk: Arc<Chunk>) {
        self.flush();
        self.done.push(chunk);
    }

    /// Closes the current chunk.
    pub(super) fn flush(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        let used = std::mem::take(&mut self.used);
        if used == 0 {
            self.pool.recycle(buffer);
            return;
        }
        let chunk = match self.stride {
            Some(stride) => Chunk::strided(&self.pool, buffer, used, stride),
            None => {
                let chunk = Chunk::varying(&self.pool, buffer, &mut self.starts);
                if self.starts.is_empty() {
                    self.starts = self.pool.starts();
                }
                chunk
            }
        };
        self.done.push(Arc::new(chunk));
    }

    fn next_buffer(&mut self, len: usize) -> Result<()> {
        self.flush();
        self.buffer = Some(self.pool.buffer(len)?);
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.pool.recycle_starts(std::mem::take(&mut self.starts));
    }
}
