//! Rows of several views under one index, for what orders and gathers them.
//!
//! ```text
//! index   | part | row of the part |        listed rows have a part only
//! ```

use std::ops::Range;

use crate::kernel::copy::Table;

/// Rows that are known by an index.
pub(crate) trait Block<'a>: Copy {
    /// The row of an index.
    fn row(self, index: usize) -> &'a [u8];

    /// The rows of successive indexes that there are.
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]>;

    /// All of them for the kernels, if they have one length.
    fn table(&self) -> Option<Table<'_, 'a>> {
        None
    }
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

/// Rows that vary: the bytes of each part and where its rows start; the low `bits` of an index are the place
/// in the part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'p, 'a> {
    pub(super) parts: &'p [(&'a [u8], &'a [u32])],
    pub(super) bits: u32,
}

impl<'a> Block<'a> for Parts<'_, 'a> {
    #[inline(always)]
    fn row(self, index: usize) -> &'a [u8] {
        let (bytes, starts) = self.parts[index >> self.bits];
        let at = index & ((1 << self.bits) - 1);
        &bytes[starts[at] as usize..starts[at + 1] as usize]
    }

    #[inline(always)]
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, starts) = self.parts[indexes.start >> self.bits];
        let first = indexes.start & ((1 << self.bits) - 1);
        let ends = starts[first..=first + indexes.len()].windows(2);
        ends.map(move |ends| &bytes[ends[0] as usize..ends[1] as usize])
    }
}

/// Rows of one length.
impl<'a> Block<'a> for Table<'_, 'a> {
    #[inline(always)]
    fn row(self, index: usize) -> &'a [u8] {
        Table::row(self, index)
    }

    #[inline(always)]
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        let (part, first) =
            (self.parts[indexes.start >> self.bits], indexes.start & ((1 << self.bits) - 1));
        let bytes = first * self.stride..(first + indexes.len()) * self.stride;
        part[bytes].chunks_exact(self.stride)
    }

    fn table(&self) -> Option<Table<'_, 'a>> {
        Some(*self)
    }
}
