//! Streams: the rows of one run, one after the other.
//!
//! ```text
//! stretch   . . h n x x l      |      more   | x x x x x       h the head: the next row to merge
//!                                                              n the row after it, word known
//!                                                              l the last row
//! ```

use super::super::rows::{Rows, Stretch};

/// The head of a run and its other rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The cursor of the head; null if no rows are left.
    pub(super) head: *const u8,
    /// The cursor of the last row of the stretch.
    pub(super) last: *const u8,
    pub(super) bytes: *const u8,
    /// The word of the row after the head.
    pub(super) word: u64,
}

impl Stream {
    /// Creates a stream of the rows of `stretch`, which is not empty.
    pub(super) fn new(stretch: Stretch) -> Self {
        Self { head: stretch.first, last: stretch.last, bytes: stretch.bytes, word: 0 }
    }

    /// Returns the row at the head.
    ///
    /// # Safety
    /// The stream has a head, and the rows of its stretch live.
    #[inline(always)]
    pub(super) unsafe fn row<R: Rows>(&self, rows: R) -> *const u8 {
        // SAFETY: the caller promises a head within live rows.
        unsafe { rows.row(self.head, self.bytes) }
    }

    /// Returns the row after the head, if the stretch or `more` has one.
    ///
    /// # Safety
    /// The rows of the stretch and of `more` live.
    pub(super) unsafe fn next<R: Rows>(&self, rows: R, more: &Stretch) -> Option<*const u8> {
        // SAFETY: a head before the last row has a row after it. The caller promises live rows.
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

    /// Advances by one row, after the last one to `more`.
    pub(super) fn turn<R: Rows>(&mut self, rows: R, more: &mut Stretch) {
        if self.head == self.last {
            let word = self.word;
            *self = Self { word, ..Self::new(std::mem::replace(more, Stretch::NONE)) };
        } else {
            self.head = self.head.wrapping_add(rows.step());
        }
    }
}
