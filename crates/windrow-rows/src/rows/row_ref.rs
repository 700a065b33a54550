//! References to rows during decoding: the rest of a row, and the readable bytes after the row.
//!
//! ```text
//! | read already | left of the row | other rows of the same buffer |
//!                ^ bytes           ^ len
//! ```
//!
//! Short values are read in blocks that may reach beyond the row. Bytes beyond the row never become
//! part of a value. Invariant: `len` is at most the length of `bytes`. A [`Rest`] refers to many
//! rows of one slice, by the read position and the end of each row.

use std::ops::{Deref, Range};

use crate::error::{Error, Result};

/// Returns the error of a row that no encoder wrote.
pub(super) fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "row".into(), message: message.into() }
}

/// A row, and readable bytes after the row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRef<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> RowRef<'a> {
    /// Refers to `row` alone: no byte after the row is readable.
    pub(crate) fn exact(row: &'a [u8]) -> Self {
        Self { bytes: row, len: row.len() }
    }

    /// Refers to the first `len` bytes of `bytes`.
    pub(crate) fn within(bytes: &'a [u8], len: usize) -> Self {
        Self { bytes, len: len.min(bytes.len()) }
    }

    /// Returns the row alone.
    pub(super) fn row(self) -> &'a [u8] {
        &self.bytes[..self.len]
    }

    /// Returns the row from `at` on, with all readable bytes after the row.
    pub(super) fn beyond(self, at: usize) -> &'a [u8] {
        self.bytes.get(at..).unwrap_or(&[])
    }

    /// Returns the row from `at` on; empty if the row is shorter.
    #[inline(always)]
    pub(super) fn from(self, at: usize) -> Self {
        let at = at.min(self.len);
        Self { bytes: &self.bytes[at..], len: self.len - at }
    }

    /// Takes the next `len` bytes off the row. Returns `None` if fewer remain.
    #[inline(always)]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        if len > self.len {
            return None;
        }
        let (head, tail) = self.bytes.split_at(len);
        (self.bytes, self.len) = (tail, self.len - len);
        Some(head)
    }

    /// Takes the next byte.
    #[inline(always)]
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }
}

impl Deref for RowRef<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the diff at the end of a row of the sum rule.
#[inline]
pub fn diff_of(row: &[u8]) -> i64 {
    let bytes = row.last_chunk::<8>().copied().unwrap_or_default();
    i64::from_le_bytes(bytes)
}

/// Rests of several rows, anywhere in one slice.
#[derive(Debug)]
pub(super) struct Rest<'a, 'r> {
    pub(super) bytes: &'a [u8],
    /// Read position of each row, advanced by reading.
    pub(super) cursors: &'r mut [usize],
    pub(super) ends: &'r [usize],
}

impl<'a> Rest<'a, '_> {
    pub(super) fn len(&self) -> usize {
        self.cursors.len()
    }

    /// Returns a range of the rows.
    pub(super) fn part(&mut self, rows: Range<usize>) -> Rest<'a, '_> {
        let (cursors, ends) = (&mut self.cursors[rows.clone()], &self.ends[rows]);
        Rest { bytes: self.bytes, cursors, ends }
    }

    /// Returns the rest of a row.
    #[inline(always)]
    pub(super) fn row(&self, at: usize) -> RowRef<'a> {
        left(self.bytes, self.cursors[at], self.ends[at])
    }

    /// Calls `read` with one row after the other, and advances each row by the bytes that `read`
    /// takes.
    #[inline(always)]
    pub(super) fn for_each(
        &mut self,
        mut read: impl FnMut(&mut RowRef<'a>) -> Result<()>,
    ) -> Result<()> {
        for (cursor, &end) in self.cursors.iter_mut().zip(self.ends) {
            let mut row = left(self.bytes, *cursor, end);
            let before = row.len();
            read(&mut row)?;
            *cursor += before - row.len();
        }
        Ok(())
    }

    /// Reads from one row like [`Rest::for_each`].
    #[inline(always)]
    pub(super) fn read<R>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut RowRef<'a>) -> Result<R>,
    ) -> Result<R> {
        let mut row = self.row(at);
        let before = row.len();
        let result = read(&mut row)?;
        self.cursors[at] += before - row.len();
        Ok(result)
    }
}

/// Returns the rest of a row from `cursor` on.
#[inline(always)]
pub(super) fn left(bytes: &[u8], cursor: usize, end: usize) -> RowRef<'_> {
    RowRef::within(&bytes[cursor.min(end)..], end.saturating_sub(cursor))
}
