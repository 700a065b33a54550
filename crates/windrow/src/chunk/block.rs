//! Rows of several views under one index, for what orders and gathers them.
//!
//! ```text
//! index   | part | row of the part |        listed rows have a part only
//! ```

use std::ops::Range;

use super::View;

/// Rows that are known by an index.
pub(crate) trait Block<'a>: Copy {
    /// The row of an index.
    fn row(self, index: usize) -> &'a [u8];

    /// The rows of successive indexes that there are.
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]>;
}

/// Rows that are listed.
impl<'a> Block<'a> for &'a [&'a [u8]] {
    #[inline(always)]
    fn row(self, index: usize) -> &'a [u8] {
        self[index]
    }

    #[inline(always)]
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        self[indexes].iter().copied()
    }
}

/// Rows of parts; the low `bits` of an index are the place in the part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'p, T> {
    parts: &'p [T],
    bits: u32,
}

impl<'p, T> Parts<'p, T> {
    /// Of parts that have `most` rows at the most.
    pub(super) fn new(parts: &'p [T], most: usize) -> Self {
        Self { parts, bits: usize::BITS - most.saturating_sub(1).leading_zeros() }
    }

    /// The indexes of the rows of each part, where `len` knows their number.
    pub(super) fn indexes(&self, len: impl Fn(&T) -> usize) -> Vec<Range<usize>> {
        let firsts = (0..self.parts.len()).map(|part| part << self.bits);
        firsts.zip(self.parts).map(|(first, part)| first..first + len(part)).collect()
    }

    #[inline(always)]
    fn place(&self, index: usize) -> (&'p T, usize) {
        (&self.parts[index >> self.bits], index & ((1 << self.bits) - 1))
    }

    #[inline(always)]
    fn places(&self, indexes: Range<usize>) -> (&'p T, Range<usize>) {
        let (part, first) = self.place(indexes.start);
        (part, first..first + indexes.len())
    }
}

/// Rows that vary.
impl<'a> Block<'a> for Parts<'_, View<'a>> {
    #[inline(always)]
    fn row(self, index: usize) -> &'a [u8] {
        let (part, at) = self.place(index);
        part.row(at)
    }

    #[inline(always)]
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        let (part, places) = self.places(indexes);
        places.map(|at| part.row(at))
    }
}

/// Rows of one length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strided<'p, 'a> {
    pub(super) parts: Parts<'p, &'a [u8]>,
    pub(super) stride: usize,
}

impl<'a> Block<'a> for Strided<'_, 'a> {
    #[inline(always)]
    fn row(self, index: usize) -> &'a [u8] {
        let (part, at) = self.parts.place(index);
        &part[at * self.stride..][..self.stride]
    }

    #[inline(always)]
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        let (part, places) = self.parts.places(indexes);
        part[places.start * self.stride..places.end * self.stride].chunks_exact(self.stride)
    }
}
