//! Rows of several views, addressed by one index, for sorting and gathering.
//!
//! ```text
//! index   | part | row of the part |        listed rows have a part only
//! ```

use std::ops::Range;

use windrow_kernel::copy::Table;

/// Rows addressed by an index.
pub(crate) trait Block<'a>: Copy {
    /// Returns the row at `index`.
    fn row(self, index: usize) -> &'a [u8];

    /// Iterates over the rows at consecutive indexes.
    fn rows(self, indexes: Range<usize>) -> impl Iterator<Item = &'a [u8]>;

    /// Returns all rows as a table for the kernels, if the rows have one length.
    fn table(&self) -> Option<Table<'_, 'a>> {
        None
    }
}

/// A list of rows.
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

/// Variable-length rows: the bytes of each part and the starts of its rows. The low `bits` of an
/// index are the position in the part.
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
