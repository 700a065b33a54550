//! The rows of arrow-row under its own names: [`Rows`], [`Row`], [`OwnedRow`].
//!
//! A row refers to its converter, as in arrow-row: a converter refuses the rows of another.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::BinaryArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::converter::Converter;
use crate::rows::Rows as Bytes;

/// Identity of a converter, shared with its rows.
pub(super) type Config = Arc<[Converter; 2]>;

/// Rows of a [`super::RowConverter`], one after the other.
#[derive(Clone, Debug)]
pub struct Rows {
    pub(super) bytes: Bytes,
    pub(super) config: Config,
}

impl Rows {
    /// Appends a row.
    ///
    /// # Panics
    /// If another converter has written the row, or if the rows exceed 4 GiB.
    pub fn push(&mut self, row: Row<'_>) {
        check_same(row.config, &self.config);
        self.bytes.push(row.data).expect("up to 4 GiB of rows");
    }

    /// Reserves memory for more rows, of `data_capacity` bytes in all.
    pub fn reserve(&mut self, row_capacity: usize, data_capacity: usize) {
        self.bytes.reserve(row_capacity, data_capacity);
    }

    /// Returns the row at index `row`.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[inline]
    pub fn row(&self, row: usize) -> Row<'_> {
        Row { data: self.bytes.row(row), config: &self.config }
    }

    /// Returns a row like [`Rows::row`]: the index is checked here too.
    ///
    /// # Panics
    /// If the index is out of bounds.
    pub fn row_unchecked(&self, index: usize) -> Row<'_> {
        self.row(index)
    }

    /// Returns the bytes of the row at index `row`.
    ///
    /// # Panics
    /// If the index is out of bounds.
    pub fn row_len(&self, row: usize) -> usize {
        self.bytes.row(row).len()
    }

    /// Returns the bytes of each row.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.bytes.iter().map(<[u8]>::len)
    }

    /// Removes all rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.bytes.len()
    }

    /// Iterates over all rows, in sequence.
    pub fn iter(&self) -> RowsIter<'_> {
        self.into_iter()
    }

    /// Returns the bytes of the rows in memory, `Self` included.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    /// Converts the rows into an array, without a copy of their bytes.
    ///
    /// # Errors
    /// [`ArrowError::InvalidArgumentError`] if the rows take over 2 GiB.
    pub fn try_into_binary(self) -> Result<BinaryArray, ArrowError> {
        let (bytes, ends) = self.bytes.into_parts();
        if i32::try_from(bytes.len()).is_err() {
            let message = format!("{} bytes of rows are too many for a BinaryArray", bytes.len());
            return Err(ArrowError::InvalidArgumentError(message));
        }
        let offsets = std::iter::once(0).chain(ends.into_iter().map(|end| end as i32));
        let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets));
        BinaryArray::try_new(offsets, Buffer::from(bytes), None)
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row<'a>;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        RowsIter { rows: self, left: 0..self.num_rows() }
    }
}

/// An iterator over rows, made by [`Rows::iter`].
#[derive(Debug)]
pub struct RowsIter<'a> {
    rows: &'a Rows,
    left: Range<usize>,
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        self.left.next().map(|row| self.rows.row(row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for RowsIter<'_> {}

impl DoubleEndedIterator for RowsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left.next_back().map(|row| self.rows.row(row))
    }
}

/// A row. Compares, hashes and is equal like its bytes. The order of rows of two converters is
/// arbitrary.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(super) data: &'a [u8],
    pub(super) config: &'a Config,
}

impl<'a> Row<'a> {
    /// Copies the row into memory of its own.
    pub fn owned(&self) -> OwnedRow {
        OwnedRow { data: self.data.into(), config: Arc::clone(self.config) }
    }

    /// Returns the bytes of the row.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

/// A row that owns its bytes.
#[derive(Clone, Debug)]
pub struct OwnedRow {
    data: Box<[u8]>,
    config: Config,
}

impl OwnedRow {
    /// Returns the row, for comparison or conversion.
    pub fn row(&self) -> Row<'_> {
        Row { data: &self.data, config: &self.config }
    }
}

/// Both kinds of rows compare and hash as bytes.
macro_rules! by_bytes {
    ($($row:ty),*) => {$(
        impl PartialEq for $row {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.data == other.data
            }
        }

        impl Eq for $row {}

        impl PartialOrd for $row {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $row {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.data.cmp(&other.data)
            }
        }

        impl Hash for $row {
            #[inline]
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.data.hash(state);
            }
        }

        impl AsRef<[u8]> for $row {
            #[inline]
            fn as_ref(&self) -> &[u8] {
                &self.data
            }
        }
    )*};
}
by_bytes!(Row<'_>, OwnedRow);

/// Checks that a row belongs to a converter.
///
/// # Panics
/// If the converters differ.
pub(super) fn check_same(row: &Config, converter: &Config) {
    assert!(Arc::ptr_eq(row, converter), "rows were not produced by this RowConverter");
}
