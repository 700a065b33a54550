//! Rows back to columns, part by part: a tile of rows goes through all parts of a row before the next one does.
//!
//! ```text
//! parts    | numbers | marker | text      | Booleans | ...        from a layout and what is wanted of it, or from the
//!                                                                 fields of `compat`
//! row      | a  b  c | 01     | t e x t 01| d  e     |
//! cursor   ^ and a distance            then the next cursor, and a distance
//! ```
//!
//! As long as every row has the same bytes, the cursors of a tile stay and the distance grows, for a part that varies
//! they move. So a column goes through the same kernels whatever stands in front of it. A number whose code is rarely
//! longer is read as one that is not; the tile in which that was wrong is read again, one row after the other.
//!
//! Invariant: kernels see places that were checked to lie within the bytes of all rows; cursors only ascend, so that
//! rows of which each ends where its last part does have had all parts within their own bytes.

mod anywhere;
pub(super) mod cells;
mod each;
mod longer;
mod numbers;
mod plan;
mod texts;
mod tile;
mod whole;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use arrow_schema::{DataType, Fields};

use super::decode::corrupt;
use crate::error::Result;
use crate::order::Layout;

pub(super) use anywhere::TILE;
pub(super) use longer::take_longer;
pub(super) use plan::Room;
pub(super) use tile::{Next, Tile, with_places};

/// Some adjacent bytes of every row, and what they become.
pub(super) trait Part {
    /// Bytes that it has in each row at least, and mostly all of them; what follows a part that varies is not known.
    fn extent(&self) -> Extent;

    /// Reads it from all rows of the tile, which goes on behind it; those that are null are told of in `valid`, which has
    /// bits for each column that says so apart from its values.
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()>;

    /// Makes arrays of all that was read.
    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()>;
}

/// What a part takes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Fixed(usize),
    Varies,
}

/// Columns that were read, to be made arrays of.
pub(super) struct Columns {
    fields: Fields,
    pub(super) rows: usize,
    pub(super) valid: Vec<Bits>,
    pub(super) ready: Vec<Option<ArrayRef>>,
}

impl Columns {
    /// None yet, of `rows` rows.
    pub(super) fn new(fields: Fields, rows: usize) -> Self {
        let valid = fields.iter().map(|_| Bits::default()).collect();
        let ready = vec![None; fields.len()];
        Self { fields, rows, valid, ready }
    }

    pub(super) fn name(&self, column: usize) -> &str {
        self.fields[column].name()
    }

    pub(super) fn data_type(&self, column: usize) -> &DataType {
        self.fields[column].data_type()
    }

    /// The nulls of `column`, if it has any.
    pub(super) fn nulls(&mut self, column: usize) -> Option<NullBuffer> {
        let bits = std::mem::take(&mut self.valid[column]);
        (bits.len > 0)
            .then(|| NullBuffer::new(bits.finish()))
            .filter(|nulls| nulls.null_count() > 0)
    }
}

/// Rows that are read to columns.
pub(super) struct Reader<'a> {
    parts: Vec<Box<dyn Part + 'a>>,
    columns: Columns,
}

impl<'a> Reader<'a> {
    /// A reader of about `rows` rows to the columns of the layout's schema that are `wanted`.
    pub(super) fn new(
        layout: &'a Layout,
        wanted: &[bool],
        rows: usize,
        room: Room,
    ) -> Result<Self> {
        let parts = plan::plan(layout, wanted, rows, room)?;
        Ok(Self::of_parts(parts, layout.schema().fields().clone()))
    }

    /// A reader of rows that have these parts, to columns of `fields`.
    pub(super) fn of_parts(parts: Vec<Box<dyn Part + 'a>>, fields: Fields) -> Self {
        Self { parts, columns: Columns::new(fields, 0) }
    }

    /// Reads a tile of rows, behind those that were read already.
    pub(super) fn read(&mut self, tile: &mut Tile<'_>) -> Result<()> {
        take_all(&mut self.parts, tile, &mut self.columns.valid)?;
        if !tile.is_read() {
            return Err(corrupt("a row does not end where its columns do"));
        }
        self.columns.rows += tile.len();
        Ok(())
    }

    /// How many rows were read.
    pub(super) fn rows(&self) -> usize {
        self.columns.rows
    }

    /// The columns, by their position among the fields.
    pub(super) fn finish(mut self) -> Result<Vec<Option<ArrayRef>>> {
        for part in self.parts {
            part.finish(&mut self.columns)?;
        }
        Ok(self.columns.ready)
    }
}

/// Reads all parts from the rows of the tile.
pub(super) fn take_all<'a>(
    parts: &mut [Box<dyn Part + 'a>],
    tile: &mut Tile<'_>,
    valid: &mut [Bits],
) -> Result<()> {
    for part in parts {
        if let Extent::Fixed(bytes) = part.extent() {
            tile.require(bytes)?;
        }
        part.take(tile, valid)?;
    }
    Ok(())
}

/// Bits of the rows so far, 64 a word, those behind the last row zeros.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { words: Vec::with_capacity(rows.div_ceil(64)), len: 0 }
    }

    /// Adds the bits of `count` rows, which `read` appends to words in the same way.
    pub(super) fn add<R>(&mut self, count: usize, read: impl FnOnce(&mut Vec<u64>) -> R) -> R {
        let shift = self.len % 64;
        self.len += count;
        if shift == 0 {
            return read(&mut self.words);
        }
        // Behind a short tile.
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

    pub(super) fn finish(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }

    /// The first `count` rows, if there are more.
    pub(super) fn truncate(&mut self, count: usize) {
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
