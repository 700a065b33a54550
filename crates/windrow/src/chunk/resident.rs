//! A chunk: sorted rows in memory.
//!
//! ```text
//! buffer   | row 0 | row 1 | ... | row n-1 |       capacity for the starts, used when spilled
//! starts   0       o1                      used    none if all rows have one length
//!
//! buffer   | gone  | row 0 | ... | row n-1 |       rows of one length, the first of them released
//! ```

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::filter::Filter;
use super::listed::Listed;
use super::times::{TimeCodes, time_codes, time_of};
use super::view::{Starts, View};
use windrow_kernel::copy::copy_short;
use windrow_kernel::prefetch::prefetch_all;
use windrow_pool::{Buffer, Lease, Pool};
use windrow_rows::{Layout, Result};

/// Bytes of a row start in a spilled chunk.
pub(crate) const OFFSET_BYTES: usize = 4;
/// Bytes at the start of a chunk, and of its last row, that a merge reads before its own prefetches
/// are ahead of it.
const FIRST_LOOK: usize = 2 << 10;
/// A chunk moves into a buffer of its own size if it fills less than one `TRIM_BELOW`th of its
/// buffer and takes at most `MOST_TRIMMED` bytes, a size that glibc allocates quickly.
const TRIM_BELOW: usize = 4;
const MOST_TRIMMED: usize = 64 << 10;
/// Average bytes of a row from which on copies of the row starts are negligible.
const LONG_ROW: usize = 1 << 10;

/// Where the rows of a chunk start.
#[derive(Debug)]
enum Places {
    Every(usize),
    At(Listed),
}

/// Sorted rows in memory.
#[derive(Debug)]
pub(crate) struct Chunk {
    pool: Pool,
    /// Taken by `drop`, to be recycled.
    buffer: Option<Buffer>,
    /// Bytes of released rows before the first row; 0 unless rows have one length.
    gone: usize,
    /// Bytes of the rows.
    used: usize,
    places: Places,
    /// Whether the buffer also holds the starts, after the rows.
    written: bool,
    /// Times, computed on first use.
    times: OnceLock<TimeCodes>,
    /// The filter of the keys, if one was made.
    filter: OnceLock<Arc<Filter>>,
}

impl Chunk {
    /// Makes a chunk of rows of `stride` bytes, in the first `used` bytes of `buffer`.
    pub(super) fn strided(pool: &Pool, buffer: Buffer, used: usize, stride: usize) -> Self {
        debug_assert!(used > 0 && used.is_multiple_of(stride), "whole rows, at least one");
        let places = Places::Every(stride);
        let times = OnceLock::new();
        let pool = pool.clone();
        let (buffer, filter) = (Some(buffer), OnceLock::new());
        Self { pool, buffer, gone: 0, used, places, written: false, times, filter }
    }

    /// Makes a chunk of variable-length rows. `starts` has the start of each row and the end; see
    /// [`Listed::take`].
    pub(super) fn varying(pool: &Pool, buffer: Buffer, starts: &mut Vec<u32>) -> Self {
        Self::listed(pool, buffer, Listed::take(pool, starts))
    }

    /// Makes a chunk of variable-length rows with stored starts.
    pub(super) fn listed(pool: &Pool, buffer: Buffer, starts: Listed) -> Self {
        debug_assert!(starts.len() > 1, "a chunk is not empty");
        let used = *starts.last().unwrap_or(&0) as usize;
        let places = Places::At(starts);
        let times = OnceLock::new();
        let (pool, buffer, filter) = (pool.clone(), Some(buffer), OnceLock::new());
        let mut chunk = Self { pool, buffer, gone: 0, used, places, written: false, times, filter };
        if used >= chunk.len() * LONG_ROW {
            chunk.write_starts();
        }
        chunk
    }

    /// Returns true if leases exceed the budget by more than a quarter of this chunk, such as a list
    /// of row starts: all evictable memory has left, and this chunk is part of the pinned rest.
    pub(crate) fn is_beyond_limit(&self) -> bool {
        let budget = self.pool.budget();
        budget.used() > budget.limit().saturating_add(self.leased_bytes() / 4)
    }

    #[inline]
    pub(crate) fn rows(&self) -> View<'_> {
        let bytes = self.bytes_up_to(self.used);
        let starts = match &self.places {
            Places::Every(stride) => Starts::Every(*stride),
            Places::At(starts) => Starts::At(starts),
        };
        View { bytes, starts }
    }

    /// Returns the bytes from the first row on, up to `end`.
    #[inline]
    fn bytes_up_to(&self, end: usize) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.gone..][..end])
    }

    /// Releases the first `rows` rows if rows have one length. Their memory stays with the chunk.
    pub(crate) fn let_go(&mut self, rows: usize) -> bool {
        let Some(stride) = self.stride() else { return false };
        let bytes = rows * stride;
        debug_assert!(bytes < self.used, "a chunk is not empty");
        (self.gone, self.used) = (self.gone + bytes, self.used - bytes);
        self.times.take();
        true
    }

    /// Moves the rows into an exactly sized buffer if they fill less than a quarter of their
    /// buffer: batches of a few rows can be many.
    pub(crate) fn trim(&mut self) {
        let starts = match &self.places {
            Places::Every(_) => 0,
            Places::At(starts) => (starts.len() - 1) * OFFSET_BYTES,
        };
        let (needed, held) = (self.used + starts, self.buffer.as_ref().map_or(0, |b| b.len()));
        if needed * TRIM_BELOW > held || needed > MOST_TRIMMED {
            return;
        }
        let mut bytes = Vec::with_capacity(needed);
        bytes.extend_from_slice(self.bytes_up_to(self.used));
        bytes.resize(needed, 0);
        let small = self.pool.small_buffer(&bytes);
        if let Some(buffer) = self.buffer.replace(small) {
            self.pool.recycle(buffer);
        }
        (self.gone, self.written) = (0, false);
        if let Places::At(starts) = &mut self.places {
            starts.trim(&self.pool);
        }
    }

    /// Copies the rows, each without its last `behind` bytes, into an exactly sized buffer. Row `n`
    /// is followed by `numbers[n]`, if there are any. Returns `None` if no byte is left or the
    /// budget has no memory to spare.
    pub(super) fn without_ends(&self, behind: usize, numbers: &[u8]) -> Option<Self> {
        let rows = self.rows();
        let lost = behind - usize::from(!numbers.is_empty());
        let used = self.used - rows.len() * lost;
        if used == 0 {
            return None;
        }
        let mut buffer = self.pool.exact_buffer(used)?;
        let mut target = &mut buffer[..];
        for (at, row) in (0..rows.len()).map(|at| (at, rows.row(at))) {
            let head = &row[..row.len() - behind];
            copy_short(target, head);
            if let Some(number) = numbers.get(at) {
                target[head.len()] = *number;
            }
            target = &mut target[row.len() - lost..];
        }
        let short = match self.places {
            Places::Every(stride) => Self::strided(&self.pool, buffer, used, stride - lost),
            Places::At(_) => {
                let mut starts = self.copied_starts(|row, start| start - row * lost);
                Self::varying(&self.pool, buffer, &mut starts)
            }
        };
        Some(short.knowing(self.known_times(), self.filter()))
    }

    /// Copies the rows with `gain` bytes more: as key and value, and time and diffs, into which
    /// `split` takes a row. Reverses [`Chunk::without_ends`].
    pub(super) fn with_ends<'a>(
        &'a self,
        gain: usize,
        split: impl Fn(&'a [u8]) -> (&'a [u8], &'a [u8]),
    ) -> Result<Self> {
        let used = self.used + self.len() * gain;
        let mut starts = self.copied_starts(|row, start| start + row * gain);
        let mut buffer = self.pool.buffer(used + starts.len() * OFFSET_BYTES)?;
        self.put_with_ends(split, &mut buffer);
        let whole = match self.stride() {
            Some(stride) => Self::strided(&self.pool, buffer, used, stride + gain),
            None => Self::varying(&self.pool, buffer, &mut starts),
        };
        Ok(whole.knowing(self.known_times(), self.filter()))
    }

    /// Returns the [`Chunk::image`] of [`Chunk::with_ends`].
    pub(super) fn image_with_ends<'a>(
        &'a self,
        gain: usize,
        split: impl Fn(&'a [u8]) -> (&'a [u8], &'a [u8]),
    ) -> Vec<u8> {
        let used = self.used + self.len() * gain;
        let starts = self.copied_starts(|row, start| start + row * gain);
        let mut image = vec![0; used + starts.len().saturating_sub(1) * OFFSET_BYTES];
        self.put_with_ends(split, &mut image);
        if !starts.is_empty() {
            put_starts(&starts, &mut image[used..]);
        }
        image
    }

    fn put_with_ends<'a>(
        &'a self,
        split: impl Fn(&'a [u8]) -> (&'a [u8], &'a [u8]),
        mut target: &mut [u8],
    ) {
        let rows = self.rows();
        for (head, end) in (0..rows.len()).map(|row| split(rows.row(row))) {
            let (row, behind) = target.split_at_mut(head.len() + end.len());
            copy_short(row, head);
            copy_short(&mut row[head.len()..], end);
            target = behind;
        }
    }

    /// Leases `bytes` that a caller keeps beside the rows.
    pub(super) fn lease(&self, bytes: usize) -> Lease {
        self.pool.budget().lease(bytes)
    }

    /// Returns the starts, each mapped by `moved`.
    fn copied_starts(&self, moved: impl Fn(usize, usize) -> usize) -> Vec<u32> {
        let Places::At(starts) = &self.places else { return Vec::new() };
        let moved = |(row, &start): (usize, &u32)| moved(row, start as usize) as u32;
        starts.iter().enumerate().map(moved).collect()
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows().len()
    }

    /// Returns the bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// Returns the bytes of memory that the chunk holds.
    pub(crate) fn leased_bytes(&self) -> usize {
        let starts = match &self.places {
            Places::Every(_) => 0,
            Places::At(starts) => starts.leased_bytes(),
        };
        self.buffer.as_ref().map_or(0, |buffer| buffer.len()) + starts
    }

    /// Prefetches what a merge reads first: the first rows and the last one.
    pub(crate) fn prefetch(&self) {
        let rows = self.rows();
        for bytes in [rows.bytes, rows.last()] {
            prefetch_all(&bytes[..bytes.len().min(FIRST_LOOK)]);
        }
    }

    /// Returns the least and the greatest time code of the rows, whose times take `width` bytes.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> TimeCodes {
        *self.times.get_or_init(|| {
            let (rows, tail) = (self.rows(), layout.tail().len());
            let codes = (0..rows.len()).map(|index| time_of(rows.row(index), width, tail));
            time_codes(width, codes)
        })
    }

    /// Returns the times if they were computed before.
    pub(super) fn known_times(&self) -> Option<TimeCodes> {
        self.times.get().copied()
    }

    /// Sets times and a filter that were found before.
    pub(super) fn knowing(self, times: Option<TimeCodes>, filter: Option<&Arc<Filter>>) -> Self {
        let _first = times.map(|times| self.times.set(times));
        let _first = filter.map(|filter| self.filter.set(Arc::clone(filter)));
        self
    }

    /// Makes a filter of the keys, unless the chunk has a filter or too few rows.
    pub(crate) fn make_filter(&self, layout: &Layout) {
        if self.filter.get().is_none()
            && let Some(filter) = Filter::of(layout, &self.pool, self.rows())
        {
            let _first = self.filter.set(Arc::new(filter));
        }
    }

    /// Returns the filter, if one was made.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.get()
    }

    /// Returns the length of the rows, if all have the same.
    pub(super) fn stride(&self) -> Option<usize> {
        match self.places {
            Places::Every(stride) => Some(stride),
            Places::At(_) => None,
        }
    }

    /// Writes the starts after the rows, so the whole image is contiguous.
    pub(super) fn write_starts(&mut self) {
        let (Places::At(starts), Some(buffer)) = (&self.places, &mut self.buffer) else { return };
        let end = self.used + (starts.len() - 1) * OFFSET_BYTES;
        if let Some(target) = buffer.get_mut(self.used..end) {
            put_starts(starts, target);
            self.written = true;
        }
    }

    /// Returns the bytes for the store: the rows, and their ends if lengths differ.
    pub(super) fn image(&self) -> Cow<'_, [u8]> {
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
            starts.recycle(&self.pool);
        }
    }
}
