//! A row that is being read: what is left of it, and what may be read behind it.
//!
//! ```text
//! | read already | left of the row | other rows of the same buffer |
//!                ^ bytes           ^ len
//! ```
//!
//! Short values are read in blocks that may reach beyond the row; they are not taken for the row's.
//! Invariant: `len` is at most the length of `bytes`.

use std::ops::Deref;

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
