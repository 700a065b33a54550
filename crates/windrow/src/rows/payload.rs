//! Payload: equality codes, one column of a tile of rows at a time.
//!
//! ```text
//! | null bits | fixed values, nulls as zeros | length | bytes | length | bytes |
//!   put_payload                                put_bytes        put_bytes
//! ```

use std::ops::Range;

use arrow_buffer::NullBuffer;

use super::column::Column;
use super::lanes::{Line, Run};
use super::length;
use super::slots::bits;
use super::tile::{TILE, Tile};
use crate::kernel::copy::copy_short;
use crate::kernel::rows::Scattered;
use crate::order::code::PayloadCode;
use crate::order::{Layout, Shape};

/// The payload of a record batch.
pub(super) struct Payload<'a> {
    pub(super) layout: &'a Layout,
    pub(super) columns: &'a [Column],
    pub(super) runs: &'a [Run],
    /// Runs that the kernels can write.
    pub(super) lines: &'a [Option<Line<'a>>],
}

/// Writes the head: null bits and values of fixed width.
pub(super) fn put_payload(payload: &Payload<'_>, tile: &mut Tile<'_>) {
    let Payload { layout, columns, runs, lines } = payload;
    let rows = tile.rows.clone();
    let (Scattered { cursors, mut distance }, out) = tile.places();
    let end_of_head = distance + layout.shape().head;
    distance = put_null_bits(layout.shape(), columns, rows.clone(), cursors, distance, out);
    for (run, line) in runs.iter().zip(*lines) {
        if let Some(line) = line {
            line.put(rows.clone(), Scattered { cursors, distance }, out);
            distance += line.bytes();
            continue;
        }
        let at = run.columns.start;
        let code = layout.payload()[at].1;
        if let (PayloadCode::Fixed(width), Column::Fixed { values, nulls }) = (code, &columns[at]) {
            let nulls = nulls.as_ref();
            put_raw(values, nulls, width, rows.clone(), cursors, distance, out);
        }
        distance += code.width();
    }
    debug_assert_eq!(distance, end_of_head);
    tile.distance = end_of_head;
}

/// Writes the length and the bytes of a column that varies, and goes on to the next part.
pub(super) fn put_bytes(column: &Column, tile: &mut Tile<'_>) {
    let rows = tile.rows.clone();
    let (cursors, out) = tile.next_part();
    let mut cursors = cursors.iter_mut();
    column.for_each_bytes(rows, |_, bytes| {
        let (Some(cursor), bytes) = (cursors.next(), bytes.unwrap_or_default()) else { return };
        *cursor += length::put(bytes.len(), &mut out[*cursor..]);
        copy_short(&mut out[*cursor..], bytes);
        *cursor += bytes.len();
    });
}

/// Writes one bit for each payload column that may be null; returns the distance to what follows.
fn put_null_bits(
    shape: &Shape,
    columns: &[Column],
    rows: Range<usize>,
    cursors: &[usize],
    mut distance: usize,
    out: &mut [u8],
) -> usize {
    for group in shape.null_bits.chunks(8) {
        let mut heads = [0; TILE];
        for (bit, &at) in group.iter().enumerate() {
            let mut valid = [1; TILE];
            if let Some(nulls) = columns[at].nulls() {
                bits(nulls.inner(), rows.start, rows.len(), &mut valid);
            }
            heads.iter_mut().zip(valid).for_each(|(head, valid)| *head |= valid << bit);
        }
        for (cursor, head) in cursors.iter().zip(heads) {
            out[cursor + distance] = head;
        }
        distance += 1;
    }
    distance
}

/// Writes one fixed-width payload column of a tile; nulls as zeros.
fn put_raw(
    values: &[u8],
    nulls: Option<&NullBuffer>,
    width: usize,
    tile: Range<usize>,
    cursors: &[usize],
    distance: usize,
    out: &mut [u8],
) {
    match width {
        1 => put_raw_of::<1>(values, nulls, tile, cursors, distance, out),
        2 => put_raw_of::<2>(values, nulls, tile, cursors, distance, out),
        16 => put_raw_of::<16>(values, nulls, tile, cursors, distance, out),
        _ => {
            for (cursor, row) in cursors.iter().zip(tile) {
                let target = &mut out[cursor + distance..][..width];
                if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                    target.copy_from_slice(&values[row * width..(row + 1) * width]);
                } else {
                    target.fill(0);
                }
            }
        }
    }
}

fn put_raw_of<const W: usize>(
    values: &[u8],
    nulls: Option<&NullBuffer>,
    tile: Range<usize>,
    cursors: &[usize],
    distance: usize,
    out: &mut [u8],
) {
    let (values, _) = values[tile.start * W..tile.end * W].as_chunks::<W>();
    for (cursor, value) in cursors.iter().zip(values) {
        out[cursor + distance..][..W].copy_from_slice(value);
    }
    if let Some(nulls) = nulls {
        for (cursor, row) in cursors.iter().zip(tile) {
            if nulls.is_null(row) {
                out[cursor + distance..][..W].fill(0);
            }
        }
    }
}
