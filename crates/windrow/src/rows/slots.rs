//! Ordered slots: one column of a tile of rows at a time.

use std::ops::Range;

use super::column::Column;
use super::fixed::{Word, with_word};
use super::{escape, text};
use crate::order::Slot;
use crate::order::code::OrderedCode;

/// Writes the marker of a slot that has one and adds its byte to the distance.
pub(super) fn put_marker(
    slot: &Slot,
    column: &Column,
    tile: Range<usize>,
    cursors: &[usize],
    distance: &mut usize,
    out: &mut [u8],
) {
    if !slot.has_marker() {
        return;
    }
    let (null, value) = text::markers(slot);
    for cursor in cursors {
        out[cursor + *distance] = value;
    }
    if let Some(nulls) = column.nulls() {
        for (cursor, row) in cursors.iter().zip(tile) {
            if nulls.is_null(row) {
                out[cursor + *distance] = null;
            }
        }
    }
    *distance += 1;
}

/// Writes one ordered slot of a tile, `distance` behind the cursors, and adds to the distance; a slot
/// that varies moves the cursors instead. True if a value took a byte more than most.
pub(super) fn put_slot(
    slot: &Slot,
    column: &Column,
    tile: Range<usize>,
    cursors: &mut [usize],
    distance: &mut usize,
    out: &mut [u8],
) -> bool {
    if slot.escapes {
        return escape::put(slot, column, tile, cursors, distance, out);
    }
    let nulls = column.nulls();
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    put_marker(slot, column, tile.clone(), cursors, distance, out);
    let flip = if slot.descending { 0xff } else { 0 };
    match (slot.code, column) {
        (OrderedCode::Bool, Column::Bool { values, .. }) => {
            for (cursor, row) in cursors.iter().zip(tile) {
                let bit = values.value(row) != slot.descending;
                out[cursor + *distance] = u8::from(valid(row) && bit);
            }
        }
        (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
            for (cursor, row) in cursors.iter().zip(tile) {
                let target = &mut out[cursor + *distance..][..width];
                if valid(row) {
                    let value = &values[row * width..(row + 1) * width];
                    target.iter_mut().zip(value).for_each(|(out, byte)| *out = byte ^ flip);
                } else {
                    target.fill(0);
                }
            }
        }
        (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
            with_word!(width, W => {
                let values = &values[tile.start * W::BYTES..tile.end * W::BYTES];
                let values = values.chunks_exact(W::BYTES).map(W::read_native);
                for ((cursor, row), value) in cursors.iter().zip(tile).zip(values) {
                    let target = &mut out[cursor + *distance..][..W::BYTES];
                    value.code(kind, slot.descending).write_big(target);
                    if nulls.is_some() && !valid(row) {
                        target.fill(0);
                    }
                }
            });
        }
        (OrderedCode::Text | OrderedCode::Binary, Column::Bytes { .. }) => {
            let (code, descending) = (slot.code, slot.descending);
            let mut cursors = cursors.iter_mut();
            column.for_each_bytes(tile, |_, bytes| {
                let Some(cursor) = cursors.next() else { return };
                *cursor += *distance;
                if let Some(bytes) = bytes {
                    *cursor += text::encode(code, descending, bytes, &mut out[*cursor..]);
                }
            });
            *distance = 0;
        }
        _ => {}
    }
    *distance += slot.code.width();
    false
}
