//! Texts, which end with their codes or with their rows.

use arrow_schema::DataType;

use super::part::{Bits, Columns, Part, Room};
use super::tile::Tile;
use crate::error::Result;
use crate::rows::strings::Strings;
use windrow_kernel::rows::take_text::Coded;
use windrow_kernel::rows::text::Form;

/// A column of texts or byte strings, each after its marker if the column is nullable.
pub(in crate::rows) struct Texts {
    column: usize,
    coded: (Coded, Form),
    null: Option<u8>,
    strings: Strings,
    /// Capacity in bytes that remains after each tile, unless more is in use; `None` keeps all
    /// capacity.
    share: Option<usize>,
}

impl Texts {
    /// Creates a column of `rows` strings of `data_type`, in the encoding `coded`.
    pub(in crate::rows) fn new(
        column: usize,
        data_type: &DataType,
        coded: (Coded, Form),
        null: Option<u8>,
        (rows, room): (usize, Room),
    ) -> Self {
        let mut strings = Strings::new(data_type);
        strings.reserve(rows, room.values + room.tile.unwrap_or(0));
        let share = room.tile.is_none().then_some(room.values);
        Self { column, coded, null, strings, share }
    }
}

impl Part for Texts {
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let Self { column, coded, null, strings, share } = self;
        let (rows, rest) = (tile.len(), &mut tile.rest());
        match null {
            None => strings.read_codes(*coded, None, rest, &mut Vec::new())?,
            null => {
                valid[*column].add(rows, |valid| strings.read_codes(*coded, *null, rest, valid))?
            }
        }
        if let Some(share) = share {
            strings.shrink_to(*share);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.put_strings(self.column, self.strings)
    }
}
