//! Parts of rows, and the columns made of parts.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Fields};

use super::tile::Tile;
use crate::error::Result;
use crate::order::code::plain_type;
use crate::rows::column::recode;
use crate::rows::strings::Strings;

/// Adjacent bytes of every row, and their conversion into columns.
pub(in crate::rows) trait Part {
    /// Returns the minimum number of bytes in each row, which most rows do not exceed. Returns
    /// `None` for a part that varies.
    fn width(&self) -> Option<usize> {
        None
    }

    /// Reads the part from all rows of the tile, and moves the tile past the part. `valid` has bits
    /// for each column that stores nulls apart from its values; the part adds the bits of its rows.
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()>;

    /// Builds arrays of all values read; none for an unwanted part.
    fn finish(self: Box<Self>, _columns: &mut Columns) -> Result<()> {
        Ok(())
    }
}

/// Bytes to reserve before rows are read.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Room {
    /// For the values of a column that varies, approximately.
    pub(in crate::rows) values: usize,
    /// Additional bytes for kernels that overwrite: the bytes of a tile. `None` if many columns
    /// vary, since each reservation would touch new pages.
    pub(in crate::rows) tile: Option<usize>,
}

/// Columns that were read, for conversion into arrays.
pub(in crate::rows) struct Columns {
    pub(super) fields: Fields,
    pub(in crate::rows) rows: usize,
    pub(in crate::rows) valid: Vec<Bits>,
    pub(in crate::rows) ready: Vec<Option<ArrayRef>>,
}

impl Columns {
    /// Creates empty columns for `rows` rows.
    pub(in crate::rows) fn new(fields: Fields, rows: usize) -> Self {
        let valid = fields.iter().map(|_| Bits::default()).collect();
        let ready = vec![None; fields.len()];
        Self { fields, rows, valid, ready }
    }

    pub(in crate::rows) fn data_type(&self, column: usize) -> &DataType {
        self.fields[column].data_type()
    }

    /// Takes the nulls of `column`, if any.
    pub(in crate::rows) fn nulls(&mut self, column: usize) -> Option<NullBuffer> {
        let bits = std::mem::take(&mut self.valid[column]);
        (bits.len > 0)
            .then(|| NullBuffer::new(bits.finish()))
            .filter(|nulls| nulls.null_count() > 0)
    }

    /// Builds `column` from `values` of fixed width.
    pub(in crate::rows) fn put_numbers(&mut self, column: usize, values: Buffer) -> Result<()> {
        let nulls = self.nulls(column);
        let plain = plain_type(self.data_type(column)).clone();
        let data = ArrayData::builder(plain).len(self.rows).add_buffer(values).nulls(nulls);
        self.put(column, make_array(data.build()?))
    }

    /// Builds `column` from `strings`.
    pub(in crate::rows) fn put_strings(
        &mut self,
        column: usize,
        mut strings: Strings,
    ) -> Result<()> {
        let nulls = self.nulls(column);
        let array = strings.finish(self.fields[column].name(), nulls)?;
        self.put(column, array)
    }

    /// Stores `array` as `column`, with the column's dictionary or run-end encoding.
    pub(in crate::rows) fn put(&mut self, column: usize, array: ArrayRef) -> Result<()> {
        let data_type = self.data_type(column);
        let is_plain = array.data_type() == data_type;
        self.ready[column] = Some(if is_plain { array } else { recode(&array, data_type)? });
        Ok(())
    }
}

/// Reads all parts from the rows of the tile.
pub(in crate::rows) fn take_all<'a>(
    parts: &mut [Box<dyn Part + 'a>],
    tile: &mut Tile<'_>,
    valid: &mut [Bits],
) -> Result<()> {
    for part in parts {
        if let Some(bytes) = part.width() {
            tile.require(bytes)?;
        }
        part.take(tile, valid)?;
    }
    Ok(())
}

/// Bits of the rows so far, 64 a word, with zeros after the last row.
#[derive(Debug, Default)]
pub(in crate::rows) struct Bits {
    words: Vec<u64>,
    pub(super) len: usize,
}

impl Bits {
    /// Adds the bits of `count` rows. `read` appends the bits to words of the same form.
    pub(in crate::rows) fn add<R>(
        &mut self,
        count: usize,
        read: impl FnOnce(&mut Vec<u64>) -> R,
    ) -> R {
        let shift = self.len % 64;
        self.len += count;
        if shift == 0 {
            return read(&mut self.words);
        }
        // The previous tile did not end at a word.
        let mut own = Vec::with_capacity(count.div_ceil(64));
        let result = read(&mut own);
        for word in own {
            if let Some(last) = self.words.last_mut() {
                *last |= word << shift;
            }
            self.words.push(word >> (64 - shift));
        }
        self.words.truncate(self.len.div_ceil(64));
        result
    }

    pub(in crate::rows) fn finish(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }

    /// Keeps the first `count` rows, if there are more.
    pub(in crate::rows) fn truncate(&mut self, count: usize) {
        if count < self.len {
            self.len = count;
            self.words.truncate(count.div_ceil(64));
            if let (Some(last), rest @ 1..) = (self.words.last_mut(), count % 64) {
                *last &= (1 << rest) - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_added_behind_any_number_of_them() {
        let mut bits = Bits::default();
        let mut expected = Vec::new();
        for (seed, count) in [3usize, 61, 64, 1, 130, 63, 0, 128, 5].into_iter().enumerate() {
            let own: Vec<bool> = (0..count).map(|at| (at * 7 + seed) % 3 == 0).collect();
            bits.add(count, |words| {
                words.extend(own.chunks(64).map(|bits| {
                    let bits = bits.iter().enumerate();
                    bits.fold(0, |word, (at, &bit)| word | u64::from(bit) << at)
                }));
            });
            expected.extend(own);
        }
        bits.add(70, |words| words.extend([u64::MAX, 63]));
        bits.truncate(expected.len());
        assert_eq!(bits.words.len(), expected.len().div_ceil(64));
        assert_eq!(bits.words.last().unwrap() >> (expected.len() % 64), 0);
        assert_eq!(bits.finish(), BooleanBuffer::from(expected));
    }
}
