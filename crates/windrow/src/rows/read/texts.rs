//! Texts, whose ordered codes say where they end, or the ends of their rows do.

use super::tile::Tile;
use super::{Bits, Columns, Extent, Part};
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
}

impl Texts {
    /// Those of `slot`, about `bytes` in all.
    pub(super) fn new(layout: &Layout, slot: &Slot, rows: usize, bytes: usize) -> Self {
        let mut strings = Strings::new(plain_type(layout.schema().field(slot.column).data_type()));
        strings.reserve(rows, bytes);
        let null = slot.has_marker().then(|| text::markers(slot).0);
        Self { slot: slot.clone(), null, strings }
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
            return strings.read_codes_at(form, bytes, cursors, ends, None, &mut Vec::new());
        }
        valid.add(rows, |valid| strings.read_codes_at(form, bytes, cursors, ends, self.null, valid))
    }

    fn finish(mut self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let column = self.slot.column;
        let nulls = columns.nulls(column);
        let array = self.strings.finish(columns.name(column), nulls)?;
        columns.put(column, array)
    }
}
