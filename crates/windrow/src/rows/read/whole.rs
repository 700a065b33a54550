//! Parts that are read one row after the other: nested values, lengths and bytes, and what is passed over.

use arrow_array::new_null_array;

use super::part::{Bits, Columns, Extent, Part};
use super::tile::Tile;
use crate::error::Result;
use crate::order::code::plain_type;
use crate::order::{Layout, Slot};
use crate::rows::builder::Builder;
use crate::rows::row_ref::{Rest, corrupt, left};
use crate::rows::strings::Strings;
use crate::rows::{length, sequence, skip};

/// Ordered values that are nested, or stored once for many rows: with their markers.
pub(super) struct Nested {
    pub(super) slot: Slot,
    pub(super) builder: Builder,
}

impl Part for Nested {
    fn extent(&self) -> Extent {
        Extent::Varies
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        self.builder.extend_values(&self.slot, &mut tile.rest())
    }

    fn finish(mut self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.ready[self.slot.column] = Some(self.builder.finish()?);
        Ok(())
    }
}

/// A slot that varies and that nobody wants.
pub(super) struct Pass(pub(super) Slot);

impl Part for Pass {
    fn extent(&self) -> Extent {
        Extent::Varies
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.for_each(|row| Ok(skip::skip(&self.0, &row, 0)))
    }

    fn finish(self: Box<Self>, _columns: &mut Columns) -> Result<()> {
        Ok(())
    }
}

/// The short code of the place in the input.
pub(super) struct Sequence {
    pub(super) flip: u8,
}

impl Part for Sequence {
    fn extent(&self) -> Extent {
        Extent::Varies
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.for_each(|row| Ok(sequence::skip_short(&row, 0, self.flip)))
    }

    fn finish(self: Box<Self>, _columns: &mut Columns) -> Result<()> {
        Ok(())
    }
}

/// Payload behind its length.
pub(super) struct Bodies {
    column: usize,
    values: Option<Values>,
}

enum Values {
    Bytes(Strings),
    Value(Builder),
}

impl Bodies {
    /// Those of `column`, about `bytes` in all.
    pub(super) fn bytes(layout: &Layout, column: usize, rows: usize, bytes: usize) -> Self {
        let mut strings = Strings::new(plain_type(layout.schema().field(column).data_type()));
        strings.reserve(rows, bytes);
        Self { column, values: Some(Values::Bytes(strings)) }
    }

    /// Codes of values.
    pub(super) fn values(column: usize, builder: Builder) -> Self {
        Self { column, values: Some(Values::Value(builder)) }
    }

    /// Nobody wants them.
    pub(super) fn passed(column: usize) -> Self {
        Self { column, values: None }
    }
}

impl Part for Bodies {
    fn extent(&self) -> Extent {
        Extent::Varies
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let bytes = tile.bytes();
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        let (cursors, row_ends) = tile.cursors();
        for (cursor, &end) in cursors.iter_mut().zip(row_ends) {
            let row = left(bytes, *cursor, end);
            let (length, behind) =
                length::take(&row).ok_or_else(|| corrupt("the length of a value is wrong"))?;
            let value = row
                .get(behind..behind + length)
                .ok_or_else(|| corrupt("a value is longer than its row"))?;
            match &mut self.values {
                Some(Values::Bytes(strings)) => strings.push(value)?,
                Some(Values::Value(_)) => {
                    starts.push(*cursor + behind);
                    ends.push(*cursor + behind + length);
                }
                None => {}
            }
            *cursor += behind + length;
        }
        if let Some(Values::Value(builder)) = &mut self.values {
            builder.extend_stored(&mut Rest { bytes, cursors: &mut starts, ends: &ends })?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let column = self.column;
        match self.values {
            Some(Values::Bytes(mut strings)) => {
                let nulls = columns.nulls(column);
                let name = columns.name(column);
                let array = strings.finish(name, nulls)?;
                columns.put(column, array)
            }
            Some(Values::Value(mut builder)) => {
                columns.ready[column] = Some(builder.finish()?);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// A column of nothing but nulls, which takes no bytes.
pub(super) struct Nulls(pub(super) usize);

impl Part for Nulls {
    fn extent(&self) -> Extent {
        Extent::Fixed(0)
    }

    fn take(&mut self, _tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let plain = plain_type(columns.data_type(self.0));
        columns.put(self.0, new_null_array(plain, columns.rows))
    }
}
