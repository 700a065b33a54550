//! Ordered slots, written for one column of a tile of rows at a time.

use super::column::{Column, Written};
use super::fixed::{Word, with_word};
use super::tile::Tile;
use super::{escape, text};
use crate::order::Slot;
use crate::order::code::OrderedCode;
use windrow_kernel::rows::text::ESCAPE;

/// Writes a slot of fixed width, without its marker. Returns true if a value has no code of this
/// width.
pub(super) fn put_slot(slot: &Slot, column: &Column, tile: &mut Tile<'_>) -> bool {
    if slot.escapes {
        return escape::put(slot, column, tile);
    }
    let nulls = column.nulls();
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let rows = tile.rows.clone();
    let (places, out) = tile.places();
    if let (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) = (slot.code, column) {
        with_word!(width, W => {
            let values = &values[rows.start * W::BYTES..rows.end * W::BYTES];
            let values = values.chunks_exact(W::BYTES).map(W::read_native);
            for ((at, row), value) in places.each().zip(rows.clone()).zip(values) {
                let target = &mut out[at..at + W::BYTES];
                value.code(kind, slot.descending).write_big(target);
                if nulls.is_some() && !valid(row) {
                    target.fill(0);
                }
            }
        });
    }
    if let (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) = (slot.code, column) {
        // Times, which are never null: kernels write all other fixed-size binaries.
        for (at, row) in places.each().zip(rows) {
            out[at..at + width].copy_from_slice(&values[row * width..][..width]);
        }
    }
    tile.distance += slot.code.width();
    false
}

/// Writes a slot of varying length, after its marker, and advances to the next part.
pub(super) fn put_varying(slot: &Slot, column: &Column, tile: &mut Tile<'_>) {
    if slot.escapes {
        return escape::put_longer(slot, column, tile);
    }
    let rows = tile.rows.clone();
    let (cursors, out) = tile.next_part();
    let flip = if slot.descending { 0xff } else { 0 };
    if let Column::Nested(nested) = column {
        return nested.put(rows, flip, cursors, out);
    }
    let form = match slot.code {
        OrderedCode::Text => text::form(flip),
        _ => text::binary_form(flip),
    };
    let escape = (slot.code != OrderedCode::Text).then_some(ESCAPE);
    column.put(rows, Written::Ordered(form, escape), cursors, out);
}
