//! Columns of fixed width that are read one at a time, and what says which values are null.

use arrow_buffer::{ArrowNativeType, MutableBuffer};
use arrow_schema::DataType;

use super::part::{Bits, Columns, Extent, Part};
use super::tile::{Tile, with_places};
use crate::error::{Error, Result};
use crate::kernel::rows::{Places, Read, take_each, take_flags, take_raw, take_some};
use crate::kernel::values::Values;
use crate::order::Slot;
use crate::order::code::Kind;
use crate::rows::escape::{self, Escape};
use crate::rows::fixed::{Word, with_kind};
use crate::rows::row_ref::{corrupt, diff_of};

/// How numbers became codes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coding {
    kind: Kind,
    descending: bool,
    /// The null is one of the codes.
    escape: Option<Escape>,
}

impl Coding {
    pub(super) fn of(slot: &Slot, kind: Kind) -> Self {
        let escape = slot.escapes.then(|| Escape::of(slot));
        Self { kind, descending: slot.descending, escape }
    }

    /// Appends values and which are not null; false if one of them takes a byte more.
    fn take_some<W: Word, P: Places>(
        self,
        escape: Escape,
        rows: usize,
        places: P,
        bytes: &[u8],
        values: &mut Values<W::Native>,
        valid: &mut Vec<u64>,
    ) -> bool {
        with_kind!(self.kind, KIND => {
            take_some(W::BYTES, rows, places, bytes, values, valid, |code| {
                let code = escape.read(W::read_big(code));
                let value = code.value.value(KIND, false).and_if(!code.is_null);
                Read { value: value.native(), valid: !code.is_null, fits: !code.is_longer }
            })
        })
    }
}

/// Reads numbers by `take`, which appends them and tells which are null, unless it says that one takes a byte more.
fn take_unless_longer<W: Word>(
    coding: Coding,
    tile: &mut Tile<'_>,
    values: &mut Values<W::Native>,
    valid: &mut Bits,
    take: impl FnOnce(&mut Tile<'_>, &mut Values<W::Native>, &mut Vec<u64>) -> bool,
) -> Result<()> {
    let (rows, read, known) = (tile.len(), values.len(), valid.len);
    if valid.add(rows, |valid| take(tile, values, valid)) {
        tile.pass(W::BYTES);
        return Ok(());
    }
    if tile.is_strided() {
        return Err(corrupt("a number is cut off"));
    }
    values.truncate(read);
    valid.truncate(known);
    take_longer::<W>(coding, tile, values, valid)
}

/// Reads numbers one row after the other, of which some take a byte more.
pub(super) fn take_longer<W: Word>(
    coding: Coding,
    tile: &mut Tile<'_>,
    values: &mut Values<W::Native>,
    valid: &mut Bits,
) -> Result<()> {
    let Coding { kind, escape, .. } = coding;
    let escape = escape.ok_or_else(|| corrupt("a number is cut off"))?;
    let (rows, bytes) = (tile.len(), tile.bytes());
    let (cursors, ends) = tile.cursors();
    let mut words = Vec::with_capacity(rows.div_ceil(WORD));
    for (cursors, ends) in cursors.chunks_mut(WORD).zip(ends.chunks(WORD)) {
        let (mut word, mut wrong) = (0, false);
        with_kind!(kind, KIND => {
            for ((cursor, &end), row) in cursors.iter_mut().zip(ends).zip(0..) {
                let near = bytes.get(*cursor..).unwrap_or(&[]);
                let Some(taken) = escape::take::<W>(escape, near) else {
                    return Err(corrupt("a number is cut off"));
                };
                *cursor += taken.len;
                wrong |= !taken.fits | (*cursor > end);
                word |= u64::from(!taken.is_null) << row;
                values.push(taken.value.value(KIND, false).and_if(!taken.is_null).native());
            }
        });
        if wrong {
            return Err(corrupt("a number is cut off or has no such code"));
        }
        words.push(word);
    }
    valid.add(rows, |valid| valid.extend_from_slice(&words));
    Ok(())
}

/// Rows of a word of bits.
const WORD: usize = 64;

/// A column of numbers that are not read together with others, of any kind and width.
pub(super) struct Each<W: Word> {
    column: usize,
    coding: Coding,
    values: Values<W::Native>,
}

impl<W: Word> Each<W> {
    pub(super) fn new(column: usize, coding: Coding, rows: usize) -> Self {
        Self { column, coding, values: Values::with_capacity(rows) }
    }

    fn take_at<P: Places>(&mut self, rows: usize, places: P, bytes: &[u8]) {
        let Coding { kind, descending, .. } = self.coding;
        let values = &mut self.values;
        with_kind!(kind, KIND => {
            take_each(W::BYTES, rows, places, bytes, values, |code| {
                W::read_big(code).value(KIND, descending).native()
            });
        });
    }
}

impl<W: Word> Part for Each<W> {
    fn extent(&self) -> Extent {
        Extent::Fixed(W::BYTES)
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let valid = &mut valid[self.column];
        let coding = self.coding;
        let Some(escape) = coding.escape else {
            with_places!(tile.next(0), places => self.take_at(rows, places, bytes));
            tile.pass(W::BYTES);
            return Ok(());
        };
        take_unless_longer::<W>(coding, tile, &mut self.values, valid, |tile, values, valid| {
            with_places!(tile.next(0), places => {
                coding.take_some::<W, _>(escape, rows, places, bytes, values, valid)
            })
        })
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_numbers(self.column, self.values.into())
    }
}

/// A column of bytes of one width, as they are or turned around.
pub(super) struct Raw {
    column: usize,
    width: usize,
    flip: u8,
    values: Values<u8>,
}

impl Raw {
    pub(super) fn new(column: usize, width: usize, descending: bool, rows: usize) -> Self {
        let flip = if descending { 0xff } else { 0 };
        Self { column, width, flip, values: Values::with_capacity(rows * width + Self::SLACK) }
    }

    /// Bytes behind the values that reading them may write.
    const SLACK: usize = 16;
}

impl Part for Raw {
    fn extent(&self) -> Extent {
        Extent::Fixed(self.width)
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let Self { width, flip, values, .. } = self;
        let (rows, bytes) = (tile.len(), tile.bytes());
        with_places!(tile.next(0), places => take_raw(*width, *flip, rows, places, bytes, values));
        tile.pass(*width);
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_numbers(self.column, self.values.into())
    }
}

/// The bits in front of the payload that say which of its values there are.
pub(super) struct NullBits {
    /// The columns of each byte, and their bits.
    pub(super) bytes: Vec<Vec<(usize, usize)>>,
}

impl Part for NullBits {
    fn extent(&self) -> Extent {
        Extent::Fixed(self.bytes.len())
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        for (at, columns) in self.bytes.iter().enumerate() {
            let mut words = vec![Vec::with_capacity(rows.div_ceil(64)); columns.len()];
            let mut flags: Vec<(usize, &mut Vec<u64>)> =
                columns.iter().map(|&(_, bit)| bit).zip(&mut words).collect();
            with_places!(tile.next(at), places => take_flags(&mut flags, rows, places, bytes));
            for (&(column, _), words) in columns.iter().zip(&words) {
                valid[column].add(rows, |valid| valid.extend_from_slice(words));
            }
        }
        tile.pass(self.bytes.len());
        Ok(())
    }

    fn finish(self: Box<Self>, _columns: &mut Columns) -> Result<()> {
        Ok(())
    }
}

/// Bytes that nobody wants.
pub(super) struct Skip(pub(super) usize);

impl Part for Skip {
    fn extent(&self) -> Extent {
        Extent::Fixed(self.0)
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.pass(self.0);
        Ok(())
    }

    fn finish(self: Box<Self>, _columns: &mut Columns) -> Result<()> {
        Ok(())
    }
}

/// The sums at the end of rows, in the width of their column.
pub(super) struct Diffs {
    column: usize,
    values: Values<i64>,
}

impl Diffs {
    pub(super) fn new(column: usize, rows: usize) -> Self {
        Self { column, values: Values::with_capacity(rows) }
    }
}

impl Part for Diffs {
    fn extent(&self) -> Extent {
        Extent::Fixed(8)
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes, values) = (tile.len(), tile.bytes(), &mut self.values);
        with_places!(tile.next(0), places => {
            take_each(8, rows, places, bytes, values, diff_of);
        });
        tile.pass(8);
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        fn narrowed<T: ArrowNativeType + TryFrom<i64>>(
            diffs: &[i64],
            field: &arrow_schema::Field,
        ) -> Result<MutableBuffer> {
            let mut out = MutableBuffer::with_capacity(size_of_val(diffs));
            for &diff in diffs {
                out.push(T::try_from(diff).map_err(|_| Error::Value {
                    column: field.name().clone(),
                    message: format!("the sum {diff} does not fit its type, {}", field.data_type()),
                })?);
            }
            Ok(out)
        }
        let values: arrow_buffer::Buffer = self.values.into();
        let field = columns.fields[self.column].clone();
        let diffs = values.typed_data::<i64>();
        let narrow = match field.data_type() {
            DataType::Int8 => narrowed::<i8>(diffs, &field)?,
            DataType::Int16 => narrowed::<i16>(diffs, &field)?,
            DataType::Int32 => narrowed::<i32>(diffs, &field)?,
            DataType::UInt8 => narrowed::<u8>(diffs, &field)?,
            DataType::UInt16 => narrowed::<u16>(diffs, &field)?,
            DataType::UInt32 => narrowed::<u32>(diffs, &field)?,
            _ => return columns.put_numbers(self.column, values),
        };
        columns.put_numbers(self.column, narrow.into())
    }
}
