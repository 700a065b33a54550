//! Chunks: sorted rows, the unit that is merged, spilled and handed over.
//!
//! ```text
//! buffer   | row 0 | row 1 | ... | row n-1 |       room for the starts, used when it is spilled
//! starts   0       o1                      used    none if all rows have one length
//!
//! buffer   | gone  | row 0 | ... | row n-1 |       rows of one length, of which the first were let go
//! ```
//!
//! Invariant: a chunk is not empty; its rows ascend strictly under the layout, tails aside; under
//! the rules that keep one row of a key, no two rows have the same key, and no diff is zero; it holds
//! at most the pool's chunk size, or one row.

mod arrange;
mod block;
mod builder;
mod chunker;
mod output;
mod page;
mod pair;
mod view;
mod within;
mod wraps;

use std::borrow::Cow;
use std::sync::OnceLock;

pub(crate) use arrange::{Arranger, Place};
pub use builder::Finish;
pub(crate) use builder::{Builder, Findings, describe};
pub(crate) use chunker::Chunker;
pub(crate) use output::FEW_SMALL;
pub(crate) use page::Page;
pub(crate) use pair::{merge_small, merges_two};
pub(crate) use view::{Starts, View};
use within::{Within, merge_within};
pub(crate) use wraps::Wraps;

use crate::error::Error;
use crate::kernel::merge::Wrapped;
use crate::kernel::prefetch::{prefetch_all, prefetch_row};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Rule};
use crate::pool::{Buffer, Lease, Pool};

/// Bytes that the start of a row takes when a chunk is spilled.
pub(crate) const OFFSET_BYTES: usize = 4;
/// Bytes at the start of a chunk, or of its last row, that a merge reads before its own prefetches
/// are ahead of it.
const FIRST_LOOK: usize = 2 << 10;
/// Bytes of a row, on average, beside which a copy of its start is nothing.
const LONG_ROW: usize = 1 << 10;

/// Where the rows of a chunk start.
#[derive(Debug)]
enum Places {
    Every(usize),
    At(Vec<u32>),
}

/// The least and the greatest time code of some rows.
pub(crate) type TimeCodes = (u64, u64);

/// Sorted rows in memory.
#[derive(Debug)]
pub(crate) struct Chunk {
    pool: Pool,
    /// Taken when the chunk drops, to be recycled.
    buffer: Option<Buffer>,
    /// Bytes before the rows, if they have one length: rows that were let go.
    gone: usize,
    /// Bytes of the rows.
    used: usize,
    places: Places,
    /// Whether the starts stand behind the rows, too.
    written: bool,
    /// For the starts, if there are any; the buffer has its own.
    lease: Option<Lease>,
    /// Found when first asked for.
    times: OnceLock<TimeCodes>,
}

impl Chunk {
    /// A chunk of rows of `stride` bytes, in the first `used` bytes of `buffer`.
    fn strided(pool: &Pool, buffer: Buffer, used: usize, stride: usize) -> Self {
        debug_assert!(used > 0 && used.is_multiple_of(stride), "whole rows, at least one");
        let places = Places::Every(stride);
        let times = OnceLock::new();
        let pool = pool.clone();
        let buffer = Some(buffer);
        Self { pool, buffer, gone: 0, used, places, written: false, lease: None, times }
    }

    /// A chunk of rows that start at `starts`, the last of which is the end.
    fn varying(pool: &Pool, buffer: Buffer, mut starts: Vec<u32>) -> Self {
        debug_assert!(starts.len() > 1, "a chunk is not empty");
        // Without a limit they are recycled as they are.
        if pool.budget().is_limited() {
            starts.shrink_to_fit();
        }
        let lease = Some(pool.budget().lease(starts.capacity() * size_of::<u32>()));
        let used = *starts.last().unwrap_or(&0) as usize;
        let places = Places::At(starts);
        let times = OnceLock::new();
        let (pool, buffer) = (pool.clone(), Some(buffer));
        let mut chunk = Self { pool, buffer, gone: 0, used, places, written: false, lease, times };
        if used >= chunk.len() * LONG_ROW {
            chunk.write_starts();
        }
        chunk
    }

    pub(crate) fn rows(&self) -> View<'_> {
        let bytes = self.bytes_up_to(self.used);
        let starts = match &self.places {
            Places::Every(stride) => Starts::Every(*stride),
            Places::At(starts) => Starts::At(starts),
        };
        View { bytes, starts }
    }

    /// The same, and what stands behind them: `rows` in all, if there are fewer of one length.
    fn rows_and(&self, rows: usize) -> View<'_> {
        let end = self.stride().map_or(0, |stride| rows * stride).max(self.used);
        View { bytes: self.bytes_up_to(end), starts: self.rows().starts }
    }

    /// The bytes from the first row on, so many.
    fn bytes_up_to(&self, end: usize) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.gone..][..end])
    }

    /// Lets the first `rows` go, if rows have one length: their memory stays with the chunk.
    pub(crate) fn let_go(&mut self, rows: usize) -> bool {
        let Some(stride) = self.stride() else { return false };
        let bytes = rows * stride;
        debug_assert!(bytes < self.used, "a chunk is not empty");
        (self.gone, self.used) = (self.gone + bytes, self.used - bytes);
        self.times.take();
        true
    }

    /// Merges `other` into the memory of this chunk, as far as that is worth while; `note` hears of sums that do
    /// not fit. Where rows are left the chunk is of no use as such.
    fn take_in(
        &mut self,
        layout: &Layout,
        pool: &Pool,
        other: &Self,
        note: &mut impl FnMut(&Pool, &[u8], i64),
    ) -> Within {
        let (Some(stride), Some(buffer)) = (self.stride(), &mut self.buffer) else {
            return Within::Refused;
        };
        let (tail, sums) = (layout.tail().len(), layout.rule() == Rule::Sum);
        let mut note = |body: &[u8], times: i64| note(pool, body, times);
        let note: Wrapped<'_> = if sums { Some(&mut note) } else { None };
        let bytes = &mut buffer[self.gone..];
        let merged = merge_within(bytes, (self.used, stride), other.rows(), tail, note);
        if let Within::Done(used) = merged {
            self.used = used;
            self.times.take();
        }
        merged
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows().len()
    }

    /// Bytes that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// Bytes of memory that the chunk holds.
    pub(crate) fn leased_bytes(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len())
            + self.lease.as_ref().map_or(0, Lease::bytes)
    }

    /// Asks for what a merge looks at first: the first rows, and the last one; or only for the `ends`, if it
    /// probably passes the chunk on.
    pub(crate) fn prefetch(&self, ends: bool) {
        let rows = self.rows();
        let start = |bytes: &[u8]| prefetch_all(&bytes[..bytes.len().min(FIRST_LOOK)]);
        if ends {
            prefetch_row(rows.row(0));
        } else {
            start(rows.bytes);
        }
        start(rows.last());
    }

    /// The least and the greatest time code of the rows, whose times take `width` bytes.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> TimeCodes {
        *self.times.get_or_init(|| {
            let rows = self.rows();
            let (mut least, mut greatest) = (u64::MAX, 0);
            for index in 0..rows.len() {
                let code = code_of(time_of(layout, width, rows.row(index)));
                (least, greatest) = (least.min(code), greatest.max(code));
            }
            (least, greatest)
        })
    }

    /// The length that all rows have, if it is one.
    fn stride(&self) -> Option<usize> {
        match self.places {
            Places::Every(stride) => Some(stride),
            Places::At(_) => None,
        }
    }

    /// Writes the starts behind the rows, so that all the chunk is stands in one place.
    fn write_starts(&mut self) {
        let (Places::At(starts), Some(buffer)) = (&self.places, &mut self.buffer) else { return };
        let end = self.used + (starts.len() - 1) * OFFSET_BYTES;
        if let Some(target) = buffer.get_mut(self.used..end) {
            put_starts(starts, target);
            self.written = true;
        }
    }

    /// The bytes that a store keeps: the rows, and where they end if their lengths differ.
    fn image(&self) -> Cow<'_, [u8]> {
        let rows = self.rows().bytes;
        let Places::At(starts) = &self.places else { return Cow::Borrowed(rows) };
        let end = self.used + (starts.len() - 1) * OFFSET_BYTES;
        if self.written {
            return Cow::Borrowed(self.bytes_up_to(end));
        }
        let mut image = vec![0; end];
        image[..self.used].copy_from_slice(rows);
        put_starts(starts, &mut image[self.used..]);
        Cow::Owned(image)
    }
}

fn put_starts(starts: &[u32], target: &mut [u8]) {
    for (target, start) in target.chunks_exact_mut(OFFSET_BYTES).zip(&starts[1..]) {
        target.copy_from_slice(&start.to_le_bytes());
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.recycle(buffer);
        }
        if let Places::At(starts) = &mut self.places {
            self.pool.recycle_starts(std::mem::take(starts));
        }
    }
}

/// Bytes of the time of a row; 0 if it has none.
pub(crate) fn time_width(layout: &Layout) -> usize {
    let data_type = |column| layout.schema().field(column).data_type();
    layout
        .time()
        .and_then(|column| OrderedCode::of(data_type(column)))
        .map_or(0, OrderedCode::width)
}

/// The time of a row, which takes `width` bytes before the tail.
#[inline(always)]
pub(crate) fn time_of<'a>(layout: &Layout, width: usize, row: &'a [u8]) -> &'a [u8] {
    let end = row.len() - layout.tail().len();
    &row[end - width..end]
}

/// Up to eight bytes as a number that has their order.
#[inline(always)]
pub(crate) fn code_of(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_be_bytes(bytes);
    }
    bytes.iter().fold(0, |code, &byte| code << 8 | u64::from(byte))
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "spilled chunk".into(), message: message.into() }
}
