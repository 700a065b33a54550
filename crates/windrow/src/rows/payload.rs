//! Payload: equality codes, one column of a tile of rows at a time.
//!
//! ```text
//! cursor + distance
//! | null bits | fixed values, nulls as zeros | length | bytes | length | bytes |   cursor behind it
//! ```

use std::ops::Range;

use arrow_buffer::NullBuffer;

use super::column::Column;
use super::lanes::Run;
use super::length;
use crate::kernel::copy::copy_short;
use crate::kernel::rows::{Lanes, Scattered, put};
use crate::order::code::PayloadCode;
use crate::order::{Layout, Shape};

/// The payload of a record batch.
pub(super) struct Payload<'a> {
    pub(super) layout: &'a Layout,
    pub(super) columns: &'a [Column],
    pub(super) runs: &'a [Run],
    /// Runs that the kernels can write.
    pub(super) lanes: &'a [Option<Lanes<'a>>],
}

/// Writes the payload of rows `tile`, `distance` behind the cursors; leaves them behind it all.
pub(super) fn put_payload(
    payload: &Payload<'_>,
    tile: Range<usize>,
    cursors: &mut [usize],
    mut distance: usize,
    out: &mut [u8],
) {
    let Payload { layout, columns, runs, lanes } = payload;
    let end_of_head = distance + layout.shape().head;
    distance = put_null_bits(layout.shape(), columns, tile.clone(), cursors, distance, out);
    for (run, lanes) in runs.iter().zip(*lanes) {
        if let Some(lanes) = lanes {
            put(lanes, tile.clone(), Scattered { cursors, distance }, out);
            distance += lanes.bytes();
            continue;
        }
        let at = run.columns.start;
        let code = layout.payload()[at].1;
        match (code, &columns[at]) {
            (PayloadCode::Bool, Column::Bool { values, nulls }) => {
                for (cursor, row) in cursors.iter().zip(tile.clone()) {
                    let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    out[cursor + distance] = u8::from(valid && values.value(row));
                }
            }
            (PayloadCode::Fixed(width), Column::Fixed { values, nulls }) => {
                let nulls = nulls.as_ref();
                put_raw(values, nulls, width, tile.clone(), cursors, distance, out);
            }
            _ => {}
        }
        distance += code.width();
    }
    debug_assert_eq!(distance, end_of_head);
    cursors.iter_mut().for_each(|cursor| *cursor += end_of_head);
    for (&(_, code), column) in layout.payload().iter().zip(*columns) {
        if code.varies() {
            let mut cursors = cursors.iter_mut();
            column.for_each_bytes(tile.clone(), |_, bytes| {
                let (Some(cursor), bytes) = (cursors.next(), bytes.unwrap_or_default()) else {
                    return;
                };
                *cursor += length::put(bytes.len(), &mut out[*cursor..]);
                copy_short(&mut out[*cursor..], bytes);
                *cursor += bytes.len();
            });
        }
    }
}

/// Writes one bit for each payload column that may be null; returns the distance to what follows.
fn put_null_bits(
    shape: &Shape,
    columns: &[Column],
    tile: Range<usize>,
    cursors: &[usize],
    mut distance: usize,
    out: &mut [u8],
) -> usize {
    for group in shape.null_bits.chunks(8) {
        let full = (1u16 << group.len()) - 1;
        for cursor in cursors {
            out[cursor + distance] = full as u8;
        }
        for (bit, &at) in group.iter().enumerate() {
            let Some(nulls) = columns[at].nulls() else { continue };
            for (cursor, row) in cursors.iter().zip(tile.clone()) {
                out[cursor + distance] ^= u8::from(nulls.is_null(row)) << bit;
            }
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
