//! Rows as loops read them, through a cursor.
//!
//! ```text
//! Fixed    | row | row | row |          the cursor points to a row
//!            ^
//! Vary     | s0 | s1 | s2 | end |       the cursor points to a row's start; the next start ends it
//!                 ^
//!          | row    | row | row  |
//! ```
//!
//! One loop serves both: the compiler removes the code for starts where rows have one length.

use super::bytes::copy;
use crate::prefetch::{LINE, prefetch, prefetch_near};

/// Rows that lie one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The cursors of the first and the last row; null if there are no rows.
    pub(super) first: *const u8,
    pub(super) last: *const u8,
    /// The base of starts, if lengths vary.
    pub(super) bytes: *const u8,
}

impl Stretch {
    /// No rows.
    pub(super) const NONE: Self =
        Self { first: std::ptr::null(), last: std::ptr::null(), bytes: std::ptr::null() };
}

/// A layout of rows.
pub(super) trait Rows: Copy {
    /// Whether rows have different lengths.
    const VARY: bool;

    /// Returns the bytes from one cursor to the next.
    fn step(self) -> usize;

    /// Returns the row at a cursor.
    ///
    /// # Safety
    /// The cursor belongs to a row of a stretch with these `bytes`, or is one step past the last
    /// row's cursor.
    unsafe fn row(self, at: *const u8, bytes: *const u8) -> *const u8;

    /// Returns the length of the row at a cursor.
    ///
    /// # Safety
    /// The cursor belongs to a row of a stretch.
    unsafe fn len(self, at: *const u8) -> usize;

    /// Returns the compared bytes of a row of `len` bytes with a tail of `tail` bytes.
    fn body(self, len: usize, tail: usize) -> usize;

    /// Returns the number of lines of a row to prefetch: the hardware prefetches the rest of longer
    /// rows.
    fn lines(self) -> usize;

    /// Prefetches a line of a run.
    fn ask(self, line: *const u8);

    /// Copies a row of `len` bytes, at least 8.
    ///
    /// # Safety
    /// `len` is at least 8. The `len` bytes are readable at `from` and writable at `to`, and the
    /// two ranges do not overlap.
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller provides `len` bytes, at least 8, in both ranges, without overlap.
        unsafe { copy(from, to, len) }
    }
}

/// Rows of `S` bytes whose last eight are a diff; rows of `.0` bytes if `S` is zero.
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

    /// Prefetches into the second-level cache: the lines ahead of 64 runs exceed the first.
    #[inline(always)]
    fn ask(self, line: *const u8) {
        prefetch_near(line);
    }

    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller provides `len` bytes, at least 8 and equal to a nonzero `S`, in both
        // ranges, without overlap.
        unsafe {
            if S > 0 {
                std::ptr::copy_nonoverlapping(from, to, S);
            } else {
                copy(from, to, len);
            }
        }
    }
}

/// Evaluates an expression for rows of a stride and a tail, bound to `$rows`. Rows of some strides
/// are copied by moves of constant size: within the caches, merges of two take half the time.
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
        let $rows = $crate::merge::rows::Fixed::<$constant>($stride);
        $run
    }};
}
pub(super) use by_stride;

/// Rows of varying lengths.
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
        // SAFETY: the cursor points to a row's start or to the last end, which is an offset within
        // the bytes.
        unsafe { bytes.add(*at.cast::<u32>() as usize) }
    }

    #[inline(always)]
    unsafe fn len(self, at: *const u8) -> usize {
        let starts = at.cast::<u32>();
        // SAFETY: the cursor belongs to a row, whose start and end are consecutive entries.
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

    /// Prefetches into the first-level cache: from the second level, merges of such rows took a
    /// tenth longer.
    #[inline(always)]
    fn ask(self, line: *const u8) {
        prefetch(line);
    }
}
