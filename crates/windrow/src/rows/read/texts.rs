//! Texts, whose ordered codes say where they end, or the ends of their rows do.

use super::part::{Bits, Columns, Extent, Part, Room};
use super::tile::Tile;
use crate::error::Result;
use crate::order::Layout;
use crate::order::Slot;
use crate::order::code::plain_type;
use crate::rows::strings::Strings;
use crate::rows::text;

/// A column of texts or byte strings, each behind its marker if it may be null.
pub(super) struct Texts {
    slot: Slot,
    null: Option<u8>,
    strings: Strings,
    /// Bytes that are kept from one tile to the next, and what is in use of more; nothing if all are.
    share: Option<usize>,
}

impl Texts {
    /// Those of `slot`, of `rows` rows.
    pub(super) fn new(layout: &Layout, slot: &Slot, rows: usize, room: Room) -> Self {
        let mut strings = Strings::new(plain_type(layout.schema().field(slot.column).data_type()));
        strings.reserve(rows, room.values + room.tile.unwrap_or(0));
        let null = slot.has_marker().then(|| text::markers(slot).0);
        let share = room.tile.is_none().then_some(room.values);
        Self { slot: slot.clone(), null, strings, share }
    }
}

impl Part for Texts {
    fn extent(&self) -> Extent {
        Extent::Varies
    }

    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let valid = &mut valid[self.slot.column];
        let rows = tile.len();
        let bytes = tile.bytes();
        let (cursors, ends) = tile.cursors();
        let form = (self.slot.code, self.slot.descending);
        let strings = &mut self.strings;
        if self.null.is_none() {
            strings.read_codes_at(form, bytes, cursors, ends, None, &mut Vec::new())?;
        } else {
            let null = self.null;
            valid
                .add(rows, |bits| strings.read_codes_at(form, bytes, cursors, ends, null, bits))?;
        }
        if let Some(share) = self.share {
            strings.shrink_to(share);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let column = self.slot.column;
        let nulls = columns.nulls(column);
        let array = self.strings.finish(columns.name(column), nulls)?;
        columns.put(column, array)
    }
}
