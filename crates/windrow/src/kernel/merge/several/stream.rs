//! Streams: the rows of one run of a block, one behind the other.
//!
//! ```text
//! stretch   . . h n x x l      |      more   | x x x x x       h the head: the row that is merged next
//!                                                              n the row behind it, whose word is known
//!                                                              l the last one
//! ```
//!
//! A row is known by a cursor: where it stands, or, if rows vary, where its start stands.

use super::super::super::prefetch::{prefetch, prefetch_near};
use super::super::bytes::copy;

/// Rows that stand one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The first row and the last; null if there is none.
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

/// A run's head, and where the other rows are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The head; null if no rows are left.
    pub(super) head: *const u8,
    /// The last row of the stretch.
    pub(super) last: *const u8,
    pub(super) bytes: *const u8,
    /// The word of the row behind the head.
    pub(super) word: u64,
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
    /// There is one, in a stretch of these bytes.
    unsafe fn row(self, at: *const u8, bytes: *const u8) -> *const u8;

    /// Its length.
    ///
    /// # Safety
    /// As [`Rows::row`]'s.
    unsafe fn len(self, at: *const u8) -> usize;

    /// The bytes that are compared of a row of `len` bytes, `tail` of which are not.
    fn body(self, len: usize, tail: usize) -> usize;

    /// Lines of a row that are asked for ahead: of longer rows the hardware finds the rest.
    fn lines(self) -> usize;

    /// Asks for a line ahead.
    fn ask(self, line: *const u8);

    /// Copies a row of `len` bytes.
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
        self.step().div_ceil(64).min(4)
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
        // SAFETY: a start, within the bytes.
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

impl Stream {
    /// The rows of `stretch`, which has some.
    pub(super) fn new(stretch: Stretch) -> Self {
        Self { head: stretch.first, last: stretch.last, bytes: stretch.bytes, word: 0 }
    }

    /// The row at the head, which there is.
    ///
    /// # Safety
    /// The stretch's rows are there.
    #[inline(always)]
    pub(super) unsafe fn row<R: Rows>(&self, rows: R) -> *const u8 {
        // SAFETY: as the function's.
        unsafe { rows.row(self.head, self.bytes) }
    }

    /// The row behind the head, if there is one in its stretch or in `more`.
    ///
    /// # Safety
    /// As [`Stream::row`]'s.
    pub(super) unsafe fn next<R: Rows>(&self, rows: R, more: &Stretch) -> Option<*const u8> {
        // SAFETY: before the last row stands another; as the function's.
        unsafe {
            if self.head.is_null() {
                None
            } else if self.head != self.last {
                Some(rows.row(self.head.add(rows.step()), self.bytes))
            } else if !more.first.is_null() {
                Some(rows.row(more.first, more.bytes))
            } else {
                None
            }
        }
    }

    /// Goes on by one row, to `more` behind the last one.
    pub(super) fn turn<R: Rows>(&mut self, rows: R, more: &mut Stretch) {
        if self.head == self.last {
            let word = self.word;
            *self = Self { word, ..Self::new(std::mem::replace(more, Stretch::NONE)) };
        } else {
            self.head = self.head.wrapping_add(rows.step());
        }
    }
}
