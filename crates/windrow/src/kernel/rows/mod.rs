//! Kernels of rows: columns of fixed width into rows and back.
//!
//! Up to four adjacent columns of one width make a block, or up to twelve with AVX-512, which is loaded
//! column by column and stored row by row (or the other way round), with the change from value to
//! code on the way:
//!
//! ```text
//! values            codes                            rows
//! a0 a1 a2 a3       xor, null, big-endian            | a0 | b0 | c0 | d0 |   place(0)
//! b0 b1 b2 b3  -->  in registers            -->      | a1 | b1 | c1 | d1 |   place(1)
//! c0 c1 c2 c3       transposed 4 x 4                 | a2 | b2 | c2 | d2 |   place(2)
//! d0 d1 d2 d3                                        | a3 | b3 | c3 | d3 |   place(3)
//! ```
//!
//! `put` writes rows, `take` reads them; each has paths for AVX2 and AVX-512, and a portable twin. `plain` is
//! for the same columns of many small batches: what `put` makes of their codes it makes once.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod binary;
mod bits;
pub(crate) mod block;
pub(crate) mod blocks;
mod bounds;
mod bytes;
mod cells;
mod each;
pub(crate) mod escapes;
pub(crate) mod exact;
mod growing;
mod heads;
mod lane;
mod lanes;
pub(crate) mod lengths;
mod pack;
mod plain;
mod portable;
mod raw;
pub(crate) mod spans;
mod starts;
pub(crate) mod take_blocks;
mod take_cells;
pub(crate) mod take_lists;
pub(crate) mod take_text;
pub(crate) mod take_views;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod wide;

pub(crate) use bits::{BitOut, take_bits};
pub(crate) use bounds::bounds;
pub(crate) use bytes::{ByteLane, Source, put_bytes};
pub(crate) use cells::{Cells, put_cells};
pub(crate) use each::{Read, take_each, take_flags, take_raw, take_some};
pub(crate) use growing::{put_growing, take_growing};
pub(crate) use heads::{Letters, PackHeads, Strings, head_bounds, pack_heads, shared, shared_each};
pub(crate) use lane::{
    Bits, Code, Cursors, Lane, LaneOut, Places, Reached, Scattered, Strided, Word,
};
pub(crate) use lanes::{LaneBlocks, Lanes};
pub(crate) use pack::{Clamp, Pack, clamp, narrow, pack};
pub(crate) use plain::{MOST, Plain, at_once};
pub(crate) use raw::{Raw, put_raw};
pub(crate) use starts::{Starts, put_texts_at};
pub(crate) use take_cells::{Cell, CellBlock, Held, take_cells};
pub(crate) use wide::{take_wide, take_wide_some};

use std::ops::Range;

/// Columns that a block takes, unless a wider kernel takes more.
const BLOCK: usize = 4;
/// Columns of a block of the widest kernel, or of several, from which on it has a way for plain ones.
const PLAIN: usize = 8;

/// Writes adjacent columns for the rows `rows`; the columns of the first of them begin at
/// `places.place(0)`. True if a value has no code of its width: the rows are then wrong.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lanes.
pub(crate) fn put<P: Places>(
    lanes: &Lanes<'_>,
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    match lanes.width() {
        4 => put_of::<4, P>(lanes, rows, places, out),
        wide::WIDE => put_wide(lanes, rows, places, out),
        _ => put_of::<8, P>(lanes, rows, places, out),
    }
}

fn put_of<const W: usize, P: Places>(
    lanes: &Lanes<'_>,
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    assert!(rows.end <= lanes.rows(), "lanes hold a value for each row");
    check_bounds(lanes.bytes(), rows.len(), places, out.len());
    #[cfg(target_arch = "x86_64")]
    let mut codes = lanes.codes();
    let mut escaped = false;
    for block in lanes.blocks() {
        let places = places.shifted(block.lanes.start * W);
        let of_block = &lanes.all()[block.lanes.clone()];
        #[cfg(target_arch = "x86_64")]
        if let Some(count) = avx512::codes_of(of_block.len())
            && let Some((of_these, behind)) = codes.split_at_checked(count)
        {
            codes = behind;
            let rows = rows.clone();
            if block.plain {
                let values = &lanes.values()[block.lanes.clone()];
                // SAFETY: as below; none of these has nulls or a code that grows.
                unsafe { avx512::put_plains(values, of_these, block.floats, rows, places, out) };
                continue;
            }
            // SAFETY: the features were detected when the codes were made, for these lanes of eight bytes;
            // places and values were checked above.
            escaped |= unsafe { avx512::put(of_block, of_these, rows, places, out) };
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected; places and values were checked above.
            escaped |= unsafe { avx2::put::<W, P>(of_block, rows.clone(), places, out) };
            continue;
        }
        escaped |= portable::put::<W, P>(of_block, rows.clone(), 0, places, out);
    }
    escaped
}

fn put_wide<P: Places>(lanes: &Lanes<'_>, rows: Range<usize>, places: P, out: &mut [u8]) -> bool {
    assert!(rows.end <= lanes.rows(), "lanes hold a value for each row");
    check_bounds(lanes.bytes(), rows.len(), places, out.len());
    // SAFETY: places and values were checked above.
    unsafe { wide::put(lanes.all(), rows, places, out) }
}

/// Appends the values of `rows` rows of `bytes` to `lanes`, adjacent columns of numbers. False if a
/// row holds a code that is longer than a number: such rows are not to be read this way.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub(crate) fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let width = size_of::<T>();
    check_bounds(lanes.len() * width, rows, places, bytes.len());
    for lane in &mut *lanes {
        lane.valid.resize(rows.div_ceil(64), 0);
    }
    let mut fits = true;
    for block in blocks_taken(lanes.len(), width) {
        let places = places.shifted(block.start * width);
        let lanes = &mut lanes[block];
        #[cfg(target_arch = "x86_64")]
        if lanes.len() > 1 && is_wide(width) {
            // SAFETY: the features were detected; places were checked, and room for bits made, above.
            fits &= unsafe { avx512::take::<T, P>(lanes, rows, places, bytes) };
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected; places were checked, and room for bits made, above.
            fits &= unsafe { avx2::take::<T, P>(lanes, rows, places, bytes) };
            continue;
        }
        fits &= portable::take::<T, P>(lanes, 0, rows, places, bytes);
    }
    fits
}

/// Cuts `count` columns into blocks: what is left if that is one of `whole`, else the first of `sizes` that
/// there are enough columns for.
fn cut(
    count: usize,
    whole: &'static [usize],
    sizes: &'static [usize],
) -> impl Iterator<Item = Range<usize>> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let left = count - first;
        let block = match whole.contains(&left) {
            true => left,
            false => *sizes.iter().find(|&&size| size <= left)?,
        };
        first += block;
        Some(first - block..first)
    })
}

/// The sizes of blocks of columns of `width` bytes.
fn sizes(width: usize) -> &'static [usize] {
    if is_wide(width) { &[8, BLOCK, 3, 2, 1] } else { &[BLOCK, 3, 2, 1] }
}

/// Blocks of `count` columns of `width` bytes that are written one behind the other.
fn blocks(count: usize, width: usize) -> impl Iterator<Item = Range<usize>> {
    cut(count, &[], sizes(width))
}

/// Blocks of `count` columns that [`put`] writes; `nulls` if there may be some.
fn blocks_put(count: usize, width: usize, nulls: bool) -> impl Iterator<Item = Range<usize>> {
    // What is left of more columns is slower in one turn if it has nulls.
    let at_once = is_wide(width) && (!nulls || count <= 12);
    cut(count, if at_once { &[10, 12] } else { &[] }, sizes(width))
}

/// Blocks of `count` columns that [`take`] reads.
fn blocks_taken(count: usize, width: usize) -> impl Iterator<Item = Range<usize>> {
    match is_wide(width) {
        // Columns begin at lines only if they are read from the first on.
        true if matches!(count, 10 | 12) => cut(count, &[10, 12], &[]),
        true => cut(count, &[], &[8, 7, 6, 5, 4, 3, 2, 1]),
        false => cut(count, &[], sizes(width)),
    }
}

/// Whether there are kernels for more columns of `width` bytes than [`BLOCK`].
fn is_wide(width: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    return width == 8 && avx512::detected();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn check_bounds<P: Places>(width: usize, rows: usize, places: P, len: usize) {
    assert!(rows == 0 || places.furthest(rows) + width <= len, "rows lie within their bytes");
}
