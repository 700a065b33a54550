//! Rows as loops read them, by a cursor.
//!
//! ```text
//! Fixed    | row | row | row |          the cursor is where a row stands
//!            ^
//! Vary     | s0 | s1 | s2 | end |       the cursor is where its start stands; the next start is its end
//!                 ^
//!          | row    | row | row  |
//! ```
//!
//! One loop serves both: what rows of one length do not need is gone when it is compiled.

use super::super::prefetch::{LINE, prefetch, prefetch_near};
use super::bytes::copy;

/// Rows that stand one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The cursors of the first row and of the last; null if there is none.
    pub(super) first: *const u8,
    pub(super) last: *const u8,
    /// What starts count from, if rows vary.
    pub(super) bytes: *const u8,
}

impl Stretch {
    /// No rows.
    pub(super) const NONE: Self =
        Self { first: std::ptr::null(), last: std::ptr::null(), bytes: std::ptr::null() };
}

/// How rows are found.
pub(super) trait Rows: Copy {
    /// Whether rows are of different lengths.
    const VARY: bool;

    /// Bytes from one cursor to the next.
    fn step(self) -> usize;

    /// The row at a cursor.
    ///
    /// # Safety
    /// There is one, in a stretch of these bytes; or the cursor is one past the last one's.
    unsafe fn row(self, at: *const u8, bytes: *const u8) -> *const u8;

    /// The length of the row at a cursor.
    ///
    /// # Safety
    /// There is one.
    unsafe fn len(self, at: *const u8) -> usize;

    /// The bytes that are compared of a row of `len` bytes, `tail` of which are not.
    fn body(self, len: usize, tail: usize) -> usize;

    /// Lines of a row that are prefetched: of longer rows the hardware finds the rest.
    fn lines(self) -> usize;

    /// Prefetches a line of a run.
    fn ask(self, line: *const u8);

    /// Copies a row of `len` bytes, at least 8.
    ///
    /// # Safety
    /// They are readable at `from` and writable at `to`, and the two do not overlap.
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: as the function's.
        unsafe { copy(from, to, len) }
    }
}

/// Rows of `S` bytes, the last eight of them a diff, or of `.0` if `S` is zero.
#[derive(Clone, Copy)]
pub(super) struct Fixed<const S: usize>(pub(super) usize);

impl<const S: usize> Rows for Fixed<S> {
    const VARY: bool = false;

    #[inline(always)]
    fn step(self) -> usize {
        if S > 0 { S } else { self.0 }
    }

    #[inline(always)]
    unsafe fn row(self, at: *const u8, _bytes: *const u8) -> *const u8 {
        at
    }

    #[inline(always)]
    unsafe fn len(self, _at: *const u8) -> usize {
        self.step()
    }

    #[inline(always)]
    fn body(self, len: usize, tail: usize) -> usize {
        if S > 0 { S - 8 } else { len - tail }
    }

    #[inline(always)]
    fn lines(self) -> usize {
        self.step().div_ceil(LINE).min(4)
    }

    /// To the second-level cache: of 64 runs more is ahead than the first holds.
    #[inline(always)]
    fn ask(self, line: *const u8) {
        prefetch_near(line);
    }

    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: as the function's.
        unsafe {
            if S > 0 {
                std::ptr::copy_nonoverlapping(from, to, S);
            } else {
                copy(from, to, len);
            }
        }
    }
}

/// Evaluates an expression for rows of a stride and a tail, which it calls `$rows`. Rows of some strides move by as many
/// moves as they take: merges of two take half the time in the caches.
macro_rules! by_stride {
    ($rows:ident = $shape:expr => $run:expr) => {
        match $shape {
            (32, 8) => by_stride!($rows, 32, 32, $run),
            (48, 8) => by_stride!($rows, 48, 48, $run),
            (64, 8) => by_stride!($rows, 64, 64, $run),
            (96, 8) => by_stride!($rows, 96, 96, $run),
            (stride, _) => by_stride!($rows, 0, stride, $run),
        }
    };
    ($rows:ident, $constant:literal, $stride:expr, $run:expr) => {{
        let $rows = $crate::kernel::merge::rows::Fixed::<$constant>($stride);
        $run
    }};
}
pub(super) use by_stride;

/// Rows of any length.
#[derive(Clone, Copy)]
pub(super) struct Vary;

impl Rows for Vary {
    const VARY: bool = true;

    #[inline(always)]
    fn step(self) -> usize {
        size_of::<u32>()
    }

    #[inline(always)]
    unsafe fn row(self, at: *const u8, bytes: *const u8) -> *const u8 {
        // SAFETY: a start, or the end, within the bytes.
        unsafe { bytes.add(*at.cast::<u32>() as usize) }
    }

    #[inline(always)]
    unsafe fn len(self, at: *const u8) -> usize {
        let starts = at.cast::<u32>();
        // SAFETY: a row has a start and an end.
        unsafe { (*starts.add(1) - *starts) as usize }
    }

    #[inline(always)]
    fn body(self, len: usize, tail: usize) -> usize {
        len - tail
    }

    #[inline(always)]
    fn lines(self) -> usize {
        2
    }

    /// To the first-level cache: from the second, merges of such rows took a tenth longer.
    #[inline(always)]
    fn ask(self, line: *const u8) {
        prefetch(line);
    }
}
