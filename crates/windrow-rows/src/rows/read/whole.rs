//! Parts read row by row: payload after its length, and skipped parts.

use arrow_array::new_null_array;

use super::part::{Bits, Columns, Part};
use super::tile::Tile;
use crate::error::Result;
use crate::order::code::plain_type;
use crate::rows::length;
use crate::rows::row_ref::corrupt;
use crate::rows::strings::Strings;

/// An unwanted part that varies. The function returns the part's length, given the rest of a row.
pub(super) struct Pass<F>(pub(super) F);

impl<F: FnMut(&[u8]) -> Result<usize>> Part for Pass<F> {
    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.for_each(|row| self.0(&row))
    }
}

/// Reads a length and its payload from the start of `row`. Returns the bytes of the length, and the
/// payload.
#[inline(always)]
pub(super) fn body(row: &[u8]) -> Result<(usize, &[u8])> {
    let (length, head) =
        length::take(row).ok_or_else(|| corrupt("the length of a value is wrong"))?;
    let value = row.get(head..head + length);
    Ok((head, value.ok_or_else(|| corrupt("a value is longer than its row"))?))
}

/// Byte strings after their lengths.
pub(super) struct Bodies {
    pub(super) column: usize,
    pub(super) strings: Strings,
}

impl Part for Bodies {
    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.for_each(|row| {
            let (head, value) = body(row.row())?;
            self.strings.push(value)?;
            Ok(head + value.len())
        })
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_strings(self.column, self.strings)
    }
}

/// A column of nulls only.
pub(in crate::rows) struct Nulls {
    pub(in crate::rows) column: usize,
    /// Bytes of each null.
    pub(in crate::rows) width: usize,
}

impl Part for Nulls {
    fn width(&self) -> Option<usize> {
        Some(self.width)
    }

    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        tile.pass(self.width);
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let plain = plain_type(columns.data_type(self.column));
        columns.put(self.column, new_null_array(plain, columns.rows))
    }
}
