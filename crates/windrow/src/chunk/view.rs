//! A view of rows of one layout in a buffer.
//!
//! ```text
//! stride   | row 0 | row 1 | row 2 |          row i starts at i * stride
//! starts   | row 0 | row 1    | row 2 |       row i starts at starts[i], the last entry is the end
//! ```

use std::ops::Range;

use super::search::bisect;
use super::sought::word_at;
use windrow_kernel::merge::{Strided, Varying};

/// Where rows start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Starts<'a> {
    /// Fixed-length rows of so many bytes.
    Every(usize),
    /// Start positions in bytes, and the end: one entry more than rows.
    At(&'a [u32]),
}

/// Consecutive rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) starts: Starts<'a>,
}

impl<'a> View<'a> {
    pub(crate) fn len(&self) -> usize {
        match self.starts {
            Starts::Every(stride) => self.bytes.len() / stride,
            Starts::At(starts) => starts.len() - 1,
        }
    }

    /// Returns the start of row `index`, or the end of all rows if `index` is their number.
    #[inline(always)]
    pub(crate) fn start(&self, index: usize) -> usize {
        match self.starts {
            Starts::Every(stride) => index * stride,
            Starts::At(starts) => starts[index] as usize,
        }
    }

    #[inline(always)]
    pub(crate) fn row(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.start(index)..self.start(index + 1)]
    }

    /// Returns the eight bytes of row `index` from `at` on as a number, padded with zeros.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize, at: usize) -> u64 {
        word_at(self.row(index), at)
    }

    /// Returns the last row. The view must not be empty.
    #[inline(always)]
    pub(crate) fn last(&self) -> &'a [u8] {
        let end = self.bytes.len();
        match self.starts {
            Starts::Every(stride) => &self.bytes[end - stride..],
            Starts::At(starts) => self.row(starts.len() - 2),
        }
    }

    /// Returns the bytes of the rows of `range`.
    pub(crate) fn span(&self, range: Range<usize>) -> &'a [u8] {
        &self.bytes[self.start(range.start)..self.start(range.end)]
    }

    /// Returns the view of the rows of `range`.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        match self.starts {
            Starts::Every(_) => Self { bytes: self.span(range), starts: self.starts },
            Starts::At(starts) => {
                Self { bytes: self.bytes, starts: Starts::At(&starts[range.start..=range.end]) }
            }
        }
    }

    /// Returns the first row of `range` for which `below` is false, by binary search; the end if
    /// there is none.
    pub(crate) fn partition_point(
        &self,
        range: Range<usize>,
        below: impl Fn(&'a [u8]) -> bool,
    ) -> usize {
        bisect(range, |row| below(self.row(row)))
    }

    /// Returns how many rows from the start of `range` fit into `bytes`.
    pub(crate) fn fitting(&self, range: Range<usize>, bytes: usize) -> usize {
        match self.starts {
            Starts::Every(stride) => (bytes / stride).min(range.len()),
            Starts::At(starts) => {
                let start = starts[range.start] as usize;
                let ends = &starts[range.start + 1..=range.end];
                ends.partition_point(|&end| end as usize - start <= bytes)
            }
        }
    }

    /// Returns the rows of `range` for the kernels of fixed-length rows; `None` if rows vary.
    pub(crate) fn strided(&self, range: Range<usize>, tail: usize) -> Option<Strided<'a>> {
        match self.starts {
            Starts::Every(stride) => {
                Some(Strided { bytes: self.span(range), stride, body: stride - tail })
            }
            Starts::At(_) => None,
        }
    }

    /// Returns the bytes and the row starts, if rows vary.
    pub(crate) fn listed(&self) -> Option<(&'a [u8], &'a [u32])> {
        match self.starts {
            Starts::Every(_) => None,
            Starts::At(starts) => Some((self.bytes, starts)),
        }
    }

    /// Returns the rows of `range` for the merge of variable-length rows; `None` if rows have one
    /// length.
    pub(crate) fn varying(&self, range: Range<usize>, tail: usize) -> Option<Varying<'a>> {
        match self.starts {
            Starts::Every(_) => None,
            Starts::At(starts) => {
                let starts = &starts[range.start..=range.end];
                Some(Varying { bytes: self.bytes, starts, tail })
            }
        }
    }
}
