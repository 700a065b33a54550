//! Streams: the rows of one run of a block, one behind the other.
//!
//! ```text
//! stretch   . . h n x x l      |      more   | x x x x x       h the head: the row that is merged next
//!                                                              n the row behind it, whose word is known
//!                                                              l the last one
//! ```

use super::super::rows::{Rows, Stretch};

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
