//! Payload: equality codes, written for one column of a tile of rows at a time.
//!
//! ```text
//! | null bits | fixed values, nulls as zeros | length | bytes | length | bytes |
//!   put_null_bits; lines                       put_bytes        put_bytes
//! ```

use super::column::{Column, Written};
use super::slots::bits;
use super::tile::{TILE, Tile};
use crate::order::Shape;
use windrow_kernel::rows::Places;

/// Writes the length and the bytes of a column that varies, and advances to the next part.
pub(super) fn put_bytes(column: &Column, tile: &mut Tile<'_>) {
    let rows = tile.rows.clone();
    let (cursors, out) = tile.next_part();
    column.put(rows, Written::Counted, cursors, out);
}

/// Writes one bit for each nullable payload column.
pub(super) fn put_null_bits(shape: &Shape, columns: &[Column], tile: &mut Tile<'_>) {
    let rows = tile.rows.clone();
    let (places, out) = tile.places();
    let groups = shape.null_bits.chunks(8);
    let bytes = groups.len();
    for (byte, group) in groups.enumerate() {
        let mut heads = [0; TILE];
        for (bit, &at) in group.iter().enumerate() {
            let mut valid = [1; TILE];
            if let Some(nulls) = columns[at].nulls() {
                bits(nulls.inner(), rows.start, rows.len(), &mut valid);
            }
            heads.iter_mut().zip(valid).for_each(|(head, valid)| *head |= valid << bit);
        }
        for (place, head) in places.shifted(byte).each().zip(heads) {
            out[place] = head;
        }
    }
    tile.distance += bytes;
}
