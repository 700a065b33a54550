//! A write buffer: encoded rows in the order of arrival.
//!
//! ```text
//! buffer   | row | row | row | row | row |      free |
//!     checked for order to: ^           ^ used
//! ```

use std::ops::Range;

use super::resident::{Chunk, OFFSET_BYTES};
use super::times::body_of;
use super::view::{Starts, View};
use windrow_kernel::merge::{ascends, ascends_varying};
use windrow_pool::{Buffer, Pool};
use windrow_rows::engine::{Encoder, Prepared};
use windrow_rows::{Layout, Result, Rule, key_len};

/// Bytes of rows whose order is checked together, while the first-level cache holds them.
const LOOK_BYTES: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct Staged {
    pub(super) buffer: Buffer,
    pub(super) used: usize,
    pub(super) rows: usize,
    /// Row starts, then the end of the last row; empty if rows have one length.
    pub(super) starts: Vec<u32>,
    /// Number of leading rows in order and unaffected by the rule; `None` after a row out of order.
    ordered: Option<usize>,
    /// Bytes of rows whose order was checked.
    looked: usize,
}

impl Staged {
    /// Returns an empty buffer with capacity for at least a row of `len` bytes.
    pub(super) fn new(layout: &Layout, pool: &Pool, len: usize) -> Result<Self> {
        let buffer = pool.buffer(len)?;
        let starts = if layout.stride().is_some() { Vec::new() } else { pool.starts() };
        Ok(Self { buffer, used: 0, rows: 0, starts, ordered: Some(0), looked: 0 })
    }

    pub(super) fn view(&self, stride: Option<usize>) -> View<'_> {
        let starts = stride.map_or(Starts::At(&self.starts), Starts::Every);
        View { bytes: &self.buffer[..self.used], starts }
    }

    /// Encodes as many of `rows` as fit and returns their number.
    pub(super) fn write(
        &mut self,
        layout: &Layout,
        encoder: &Encoder,
        prepared: &Prepared,
        rows: Range<usize>,
    ) -> usize {
        let (room, used) = (self.buffer.len(), self.used);
        let (mut fit, mut end) = (0, used);
        if let Some(stride) = layout.stride() {
            fit = rows.len().min((room - used) / stride);
            end += fit * stride;
        } else {
            while fit < rows.len() {
                let longer = end + prepared.row_len(rows.start + fit);
                if longer + (self.rows + fit + 1) * OFFSET_BYTES > room {
                    break;
                }
                (fit, end) = (fit + 1, longer);
                self.starts.push(end as u32);
            }
        }
        let out = &mut self.buffer[used..end];
        encoder.encode(prepared, rows.start..rows.start + fit, out);
        self.add(layout, fit, end);
        fit
    }

    /// Copies as many of `rows`, which are rows of `layout`, as fit, and returns their number.
    pub(super) fn copy(&mut self, layout: &Layout, rows: View<'_>) -> usize {
        let (room, used) = (self.buffer.len(), self.used);
        let fit = match layout.stride() {
            Some(stride) => rows.len().min((room - used) / stride),
            None => {
                let first = rows.start(0);
                let fits = |&count: &usize| {
                    let end = used + rows.start(count) - first;
                    end + (self.rows + count) * OFFSET_BYTES <= room
                };
                let fit = (1..=rows.len()).take_while(fits).count();
                let ends = (1..=fit).map(|count| (used + rows.start(count) - first) as u32);
                self.starts.extend(ends);
                fit
            }
        };
        let bytes = rows.span(0..fit);
        let end = used + bytes.len();
        self.buffer[used..end].copy_from_slice(bytes);
        self.add(layout, fit, end);
        fit
    }

    /// Counts `rows` written rows, which end at byte `end`.
    fn add(&mut self, layout: &Layout, rows: usize, end: usize) {
        (self.used, self.rows) = (end, self.rows + rows);
        if self.used - self.looked >= LOOK_BYTES {
            self.look(layout);
        }
    }

    /// Checks the order of rows added since the last check. Returns true if all rows are in order.
    pub(super) fn look(&mut self, layout: &Layout) -> bool {
        if let Some(known) = self.ordered
            && known < self.rows
        {
            let rows = self.view(layout.stride()).part(known.saturating_sub(1)..self.rows);
            self.ordered = is_ordered(layout, rows).then_some(self.rows);
            self.looked = self.used;
        }
        self.ordered.is_some()
    }

    /// Turns the rows, which are in order, into a chunk; `None` if there are none.
    pub(super) fn into_chunk(mut self, layout: &Layout, pool: &Pool) -> Option<Chunk> {
        if self.rows == 0 {
            self.recycle(pool);
            return None;
        }
        Some(match layout.stride() {
            Some(stride) => Chunk::strided(pool, self.buffer, self.used, stride),
            None => Chunk::varying(pool, self.buffer, &mut self.starts),
        })
    }

    pub(super) fn recycle(self, pool: &Pool) {
        pool.recycle(self.buffer);
        pool.recycle_starts(self.starts);
    }
}

/// Returns true if the rows ascend strictly, tails ignored, and, with `diffs`, no diff is zero.
fn ascend(rows: View<'_>, tail: usize, diffs: bool) -> bool {
    let all = 0..rows.len();
    match rows.strided(all.clone(), tail) {
        Some(rows) => ascends(rows, diffs),
        None => rows.varying(all, tail).is_some_and(|rows| ascends_varying(rows, diffs)),
    }
}

/// Returns true if rows are in order and unaffected by the rule. The first few rows expose unsorted
/// input.
fn is_ordered(layout: &Layout, rows: View<'_>) -> bool {
    let (tail, sums) = (layout.tail().len(), layout.rule() == Rule::Sum);
    if sums && !layout.tail().is_one_sum() {
        let zero = |index| layout.tail().is_zero(&rows.row(index)[rows.row(index).len() - tail..]);
        return ascend(rows, tail, false) && !(0..rows.len()).any(zero);
    }
    if !layout.rule().is_by_key() {
        return ascend(rows, tail, sums);
    }
    let mut before = rows.row(0);
    (1..rows.len()).all(|index| {
        let row = rows.row(index);
        let ascends = body_of(before, tail) < body_of(row, tail);
        let repeats = row.starts_with(&before[..key_len(layout, before)]);
        before = row;
        ascends && !repeats
    })
}
