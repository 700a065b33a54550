//! A row that is being read: what is left of it, and what may be read behind it.
//!
//! ```text
//! | read already | left of the row | other rows of the same buffer |
//!                ^ bytes           ^ len
//! ```
//!
//! Short values are read in blocks that may reach beyond the row; they are not taken for the row's.
//! Invariant: `len` is at most the length of `bytes`. Many rows of one slice are a [`Rest`]: where each is read next, and
//! where it ends.

use std::ops::{Deref, Range};

use crate::error::{Error, Result};

/// An error of a row that no encoder wrote.
pub(super) fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "row".into(), message: message.into() }
}

/// A row, and what may be read behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRef<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> RowRef<'a> {
    /// The row `row`, of which nothing else may be read.
    pub(crate) fn exact(row: &'a [u8]) -> Self {
        Self { bytes: row, len: row.len() }
    }

    /// The first `len` bytes of `bytes`.
    pub(crate) fn within(bytes: &'a [u8], len: usize) -> Self {
        Self { bytes, len: len.min(bytes.len()) }
    }

    /// The row alone.
    pub(super) fn row(self) -> &'a [u8] {
        &self.bytes[..self.len]
    }

    /// The row from `at` on, and whatever is behind it.
    pub(super) fn beyond(self, at: usize) -> &'a [u8] {
        self.bytes.get(at..).unwrap_or(&[])
    }

    /// The row from `at` on; nothing of it if it is not that long.
    #[inline(always)]
    pub(super) fn from(self, at: usize) -> Self {
        let at = at.min(self.len);
        Self { bytes: &self.bytes[at..], len: self.len - at }
    }

    /// The next `len` bytes, which are then behind; nothing if fewer are left.
    #[inline(always)]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        if len > self.len {
            return None;
        }
        let (head, tail) = self.bytes.split_at(len);
        (self.bytes, self.len) = (tail, self.len - len);
        Some(head)
    }

    /// The next byte.
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

/// The diff at the end of a row of the sum rule.
pub(crate) fn diff_of(row: &[u8]) -> i64 {
    let bytes = row.last_chunk::<8>().copied().unwrap_or_default();
    i64::from_le_bytes(bytes)
}

/// What is left of some rows, wherever they are in one slice.
#[derive(Debug)]
pub(super) struct Rest<'a, 'r> {
    pub(super) bytes: &'a [u8],
    /// Where each row is read next: they move on.
    pub(super) cursors: &'r mut [usize],
    pub(super) ends: &'r [usize],
}

impl<'a> Rest<'a, '_> {
    pub(super) fn len(&self) -> usize {
        self.cursors.len()
    }

    /// Some of the rows.
    pub(super) fn part(&mut self, rows: Range<usize>) -> Rest<'a, '_> {
        let (cursors, ends) = (&mut self.cursors[rows.clone()], &self.ends[rows]);
        Rest { bytes: self.bytes, cursors, ends }
    }

    /// What is left of a row.
    #[inline(always)]
    pub(super) fn row(&self, at: usize) -> RowRef<'a> {
        left(self.bytes, self.cursors[at], self.ends[at])
    }

    /// Reads one row after the other: what `read` takes of a row is then behind it.
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

    /// As [`Rest::for_each`], of one row.
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

/// What is left of a row from `cursor` on.
#[inline(always)]
pub(super) fn left(bytes: &[u8], cursor: usize, end: usize) -> RowRef<'_> {
    RowRef::within(&bytes[cursor.min(end)..], end.saturating_sub(cursor))
}
