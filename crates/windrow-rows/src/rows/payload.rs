//! Payload: equality codes, written for one column of a tile of rows at a time.
//!
//! ```text
//! | null bits | fixed values, nulls as zeros | length | bytes | length | bytes |
//!   put_null_bits; lines                       put_bytes        put_bytes
//! ```

use super::column::{Column, Written};
use super::lanes::bits;
use super::tile::{TILE, Tile};
use crate::order::Shape;
use windrow_kernel::partition::bits::{GROUP, WORD, spread};
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
    let groups = shape.null_bits.chunks(GROUP);
    let bytes = groups.len();
    for (byte, group) in groups.enumerate() {
        let mut heads = [0; TILE];
        let firsts = rows.clone().step_by(WORD);
        for (first, heads) in firsts.zip(heads.as_chunks_mut::<{ WORD }>().0) {
            let mut words = [0; GROUP];
            for (word, &at) in words.iter_mut().zip(group) {
                *word = columns[at].nulls().map_or(u64::MAX, |nulls| bits(nulls).word(first));
            }
            *heads = spread(&words);
        }
        for (place, head) in places.shifted(byte).each().zip(heads) {
            out[place] = head;
        }
    }
    tile.distance += bytes;
}
