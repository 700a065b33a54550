//! Columns of fixed width that are read one at a time, and null bits.

use arrow_array::{ArrowPrimitiveType, downcast_integer};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use super::cells::Cells;
use super::part::{Bits, Columns, Part};
use super::tile::{Tile, with_places};
use crate::error::{Error, Result};
use crate::order::Slot;
use crate::order::code::Kind;
use crate::rows::escape::{self, Escape};
use crate::rows::fixed::{Word, with_kind};
use crate::rows::nested::VALUE;
use crate::rows::row_ref::{corrupt, diff_of};
use windrow_kernel::rows::{Read, take_each, take_flags, take_raw, take_some};
use windrow_kernel::values::Values;

/// The encoding of a column's numbers.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Coding {
    pub(in crate::rows) kind: Kind,
    pub(in crate::rows) descending: bool,
    pub(in crate::rows) null: Null,
}

/// Location of a number's null.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) enum Null {
    /// In another part, or nowhere.
    Elsewhere,
    /// Among the codes.
    Escape(Escape),
    /// This byte in front of a code, whose bytes are then arbitrary.
    Marker(u8),
}

impl Coding {
    pub(super) fn of(slot: &Slot, kind: Kind) -> Self {
        let null = if slot.escapes { Null::Escape(Escape::of(slot)) } else { Null::Elsewhere };
        Self { kind, descending: slot.descending, null }
    }
}

/// Reads numbers row by row, some with an extra byte.
pub(super) fn take_longer<W: Word>(
    coding: Coding,
    tile: &mut Tile<'_>,
    values: &mut Values<W>,
    valid: &mut Bits,
) -> Result<()> {
    let Coding { kind, null: Null::Escape(escape), .. } = coding else {
        return Err(corrupt("a number is cut off"));
    };
    let (rows, bytes) = (tile.len(), tile.bytes());
    let (cursors, ends) = tile.cursors();
    let mut words = Vec::with_capacity(rows.div_ceil(WORD));
    for (cursors, ends) in cursors.chunks_mut(WORD).zip(ends.chunks(WORD)) {
        let (mut word, mut wrong, mut block) = (0, false, [W::default(); WORD]);
        with_kind!(kind, KIND => {
            let each = cursors.iter_mut().zip(ends).zip(&mut block);
            for (row, ((cursor, &end), value)) in each.enumerate() {
                let near = bytes.get(*cursor..).unwrap_or(&[]);
                let Some(taken) = escape::take::<W>(escape, near) else {
                    return Err(corrupt("a number is cut off"));
                };
                *cursor += taken.len;
                wrong |= !taken.fits | (*cursor > end);
                word |= u64::from(!taken.is_null) << row;
                *value = taken.value.value(KIND, false).and_if(!taken.is_null);
            }
        });
        if wrong {
            return Err(corrupt("a number is cut off or has no such code"));
        }
        values.extend(&block[..cursors.len()]);
        words.push(word);
    }
    valid.add(rows, |valid| valid.extend_from_slice(&words));
    Ok(())
}

/// Rows in a word of bits.
const WORD: usize = 64;

/// A column of numbers, of any kind and width, that is not read together with others.
pub(in crate::rows) struct Each<W: Word> {
    column: usize,
    coding: Coding,
    values: Values<W>,
}

impl<W: Word> Each<W> {
    pub(in crate::rows) fn new(column: usize, coding: Coding, rows: usize) -> Self {
        Self { column, coding, values: Values::with_capacity(rows) }
    }

    fn bytes(&self) -> usize {
        W::BYTES + usize::from(matches!(self.coding.null, Null::Marker(_)))
    }

    /// Reads codes with an escape code for nulls. If a code has an extra byte, all rows are read
    /// again, row by row.
    fn take_escaped(
        &mut self,
        escape: Escape,
        tile: &mut Tile<'_>,
        valid: &mut Bits,
    ) -> Result<()> {
        let (rows, bytes, kind) = (tile.len(), tile.bytes(), self.coding.kind);
        let values = &mut self.values;
        let (read, known) = (values.len(), valid.len);
        let fits = valid.add(rows, |valid| {
            with_places!(tile.next(0), places => with_kind!(kind, KIND => {
                take_some(W::BYTES, rows, places, bytes, values, valid, |code| {
                    let code = escape.read(W::read_big(code));
                    let value = code.value.value(KIND, false).and_if(!code.is_null);
                    Read { value, valid: !code.is_null, fits: !code.is_longer }
                })
            }))
        });
        if fits {
            tile.pass(W::BYTES);
            return Ok(());
        }
        if tile.is_strided() {
            return Err(corrupt("a number is cut off"));
        }
        values.truncate(read);
        valid.truncate(known);
        take_longer::<W>(self.coding, tile, values, valid)
    }

    /// Reads codes after markers; `null` is the marker of a null. Returns false if a marker is
    /// invalid.
    fn take_marked(&mut self, null: u8, tile: &mut Tile<'_>, valid: &mut Vec<u64>) -> bool {
        let (rows, bytes, width) = (tile.len(), tile.bytes(), self.bytes());
        let Coding { kind, descending, .. } = self.coding;
        with_places!(tile.next(0), places => with_kind!(kind, KIND => {
            take_some(width, rows, places, bytes, &mut self.values, valid, |cell| {
                let (marker, code) = (cell[0], W::read_big(&cell[1..]));
                let valid = marker == VALUE;
                let value = code.value(KIND, descending).and_if(valid);
                Read { value, valid, fits: valid | (marker == null) }
            })
        }))
    }
}

impl<W: Word> Part for Each<W> {
    fn width(&self) -> Option<usize> {
        Some(self.bytes())
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let (rows, bytes) = (tile.len(), tile.bytes());
        let valid = &mut valid[self.column];
        let Coding { kind, descending, null } = self.coding;
        match null {
            Null::Escape(escape) => return self.take_escaped(escape, tile, valid),
            Null::Marker(null) => {
                if !valid.add(rows, |valid| self.take_marked(null, tile, valid)) {
                    return Err(corrupt("a marker that is neither null nor value"));
                }
            }
            Null::Elsewhere => {
                let values = &mut self.values;
                with_places!(tile.next(0), places => with_kind!(kind, KIND => {
                    take_each(W::BYTES, rows, places, bytes, values, |code| {
                        W::read_big(code).value(KIND, descending)
                    });
                }));
            }
        }
        tile.pass(self.bytes());
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_numbers(self.column, self.values.into())
    }
}

/// A column of bytes of one width, unchanged or complemented by `flip`.
pub(in crate::rows) struct Raw {
    column: usize,
    width: usize,
    flip: u8,
    /// Markers of values whose bytes are arbitrary in null rows.
    markers: Option<Cells>,
    values: Values<u8>,
}

impl Raw {
    /// Creates the column. `null` is the marker of a null, if the bytes of nulls are arbitrary.
    pub(in crate::rows) fn new(
        column: usize,
        width: usize,
        flip: u8,
        null: Option<u8>,
        rows: usize,
    ) -> Self {
        let markers = null.map(|null| Cells::markers(column, null));
        let values = Values::with_capacity(rows * width);
        Self { column, width, flip, markers, values }
    }
}

impl Part for Raw {
    fn width(&self) -> Option<usize> {
        Some(self.markers.as_ref().map_or(0, Cells::bytes) + self.width)
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let Self { width, flip, markers, values, .. } = self;
        if let Some(markers) = markers {
            markers.take(tile, valid)?;
        }
        let (rows, bytes) = (tile.len(), tile.bytes());
        with_places!(tile.next(0), places => take_raw(*width, *flip, rows, places, bytes, values));
        tile.pass(*width);
        if let Some(markers) = markers {
            let words = markers.cells().flat_map(|cell| &cell.valid);
            let values = values.last_mut(rows * *width).chunks_mut((WORD * *width).max(1));
            for (word, values) in words.zip(values) {
                let values = values.chunks_exact_mut(*width).enumerate();
                values.filter(|(row, _)| word >> row & 1 == 0).for_each(|(_, value)| value.fill(0));
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_numbers(self.column, self.values.into())
    }
}

/// The null bits in front of the payload.
pub(super) struct NullBits {
    /// Columns of each byte, with their bits.
    pub(super) bytes: Vec<Vec<(usize, usize)>>,
}

impl Part for NullBits {
    fn width(&self) -> Option<usize> {
        Some(self.bytes.len())
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
}

/// Unwanted bytes.
pub(super) struct Skip(pub(super) usize);

impl Part for Skip {
    fn width(&self) -> Option<usize> {
        Some(self.0)
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.pass(self.0);
        Ok(())
    }
}

/// The diffs at the end of rows, converted to the type of their column.
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
    fn width(&self) -> Option<usize> {
        Some(8)
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
        let (values, field) = (Buffer::from(self.values), columns.fields[self.column].clone());
        if *field.data_type() == DataType::Int64 {
            return columns.put_numbers(self.column, values);
        }
        macro_rules! narrowed {
            ($type:ty) => {{
                let narrow = |&diff: &i64| {
                    diff.try_into().map_err(|_| Error::Value {
                        column: field.name().clone(),
                        message: format!(
                            "the sum {diff} does not fit its type, {}",
                            field.data_type()
                        ),
                    })
                };
                let narrow = values.typed_data().iter().map(narrow);
                narrow.collect::<Result<Vec<<$type as ArrowPrimitiveType>::Native>>>()?.into()
            }};
        }
        let values = downcast_integer! {
            field.data_type() => (narrowed),
            _ => values,
        };
        columns.put_numbers(self.column, values)
    }
}
