//! Cells: a marker byte and a big-endian code for every value.
//!
//! ```text
//! | 01 | code of a value: W bytes |    | null marker | zeros |
//! ```

use std::ops::Range;

use super::blocks;
use super::lane::{Lane, Places};

/// The marker of a value.
pub(super) const VALUE: u8 = 1;

/// Adjacent columns of one width, and what marks their nulls.
///
/// Invariant: numbers of 4 or 8 bytes; as many markers as lanes.
#[derive(Debug)]
pub(crate) struct Cells<'a> {
    lanes: Vec<Lane<'a>>,
    nulls: Vec<u8>,
    width: usize,
}

impl<'a> Cells<'a> {
    /// Columns of `width` bytes, 4 or 8, whose nulls are marked with the byte of `nulls`.
    ///
    /// # Panics
    /// If the width is another, or there are not as many lanes as markers.
    pub(crate) fn new(lanes: Vec<Lane<'a>>, nulls: Vec<u8>, width: usize) -> Self {
        assert!(width == 4 || width == 8, "numbers of 4 or 8 bytes");
        assert_eq!(lanes.len(), nulls.len(), "a marker for each lane");
        Self { lanes, nulls, width }
    }

    /// Bytes that they take in a row.
    pub(crate) fn bytes(&self) -> usize {
        self.lanes.len() * (self.width + 1)
    }
}

/// Writes `cells` for `rows`; those of the first of them begin at `places.place(0)`.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of a lane.
pub(crate) fn put_cells<P: Places>(
    cells: &Cells<'_>,
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) {
    let Cells { lanes, nulls, width } = cells;
    let (width, count) = (*width, rows.len());
    let fits = count == 0 || places.furthest(count) + cells.bytes() <= out.len();
    assert!(fits, "cells lie within the bytes");
    for lane in lanes {
        assert!(lane.values.len() / width >= rows.end, "a value for each row");
        assert!(lane.valid.is_none_or(|bits| bits.holds(rows.end)), "a bit for each row");
    }
    for block in blocks(lanes.len(), width) {
        let places = places.shifted(block.start * (width + 1));
        let (lanes, nulls) = (&lanes[block.clone()], &nulls[block]);
        #[cfg(target_arch = "x86_64")]
        if width == 8 && super::avx512::detected() {
            // SAFETY: the features were detected; cells, values and bits were checked above.
            unsafe { super::avx512::put_cells(lanes, nulls, rows.clone(), places, out) };
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if let ([a, b, c, d], [w, x, y, z]) = (lanes, nulls)
            && std::arch::is_x86_feature_detected!("avx2")
        {
            let (lanes, nulls) = ([a, b, c, d], [*w, *x, *y, *z]);
            // SAFETY: AVX2 was detected; cells, values and bits were checked above.
            unsafe { super::avx2::put_cells(lanes, width, rows.clone(), nulls, places, out) };
            continue;
        }
        put_block(lanes, nulls, width, rows.clone(), 0, places, out);
    }
}

/// The portable twin, and the last few columns and rows: those from the one at `from` on. The cells lie within
/// `out` and the lanes hold `rows`, which is what [`put_cells`] checks.
pub(super) fn put_block<P: Places>(
    lanes: &[Lane<'_>],
    nulls: &[u8],
    width: usize,
    rows: Range<usize>,
    from: usize,
    places: P,
    out: &mut [u8],
) {
    if from == rows.len() {
        return;
    }
    let end = places.furthest(rows.len()) + lanes.len() * (width + 1);
    assert!(end <= out.len(), "cells within the bytes");
    for (index, (lane, &null)) in lanes.iter().zip(nulls).enumerate() {
        let places = places.shifted(index * (width + 1));
        // SAFETY: each cell lies within `out`, as was checked for the furthest; the lane holds a value
        // and a bit for each row.
        unsafe {
            match width {
                4 => put::<4, P>(lane, rows.clone(), from, null, places, out.as_mut_ptr()),
                _ => put::<8, P>(lane, rows.clone(), from, null, places, out.as_mut_ptr()),
            }
        }
    }
}

/// Unchecked stores: 2.6x the checked loop, which the marker and the code each pay for.
///
/// # Safety
/// `out + places.place(n)` is valid for `W + 1` bytes for the `n`th of `rows`; the lane holds a value
/// of `W` bytes and a validity bit for all of them.
unsafe fn put<const W: usize, P: Places>(
    lane: &Lane<'_>,
    rows: Range<usize>,
    from: usize,
    null: u8,
    places: P,
    out: *mut u8,
) {
    let (flip, float) = (lane.code.flip, lane.code.float);
    let values = lane.values.as_ptr();
    let mut first = rows.start + from;
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
    use super::super::lane::{Bits, Code, Scattered, Strided};
    use super::*;

    #[test]
    fn cells_are_markers_and_codes() {
        for width in [4, 8] {
            for columns in 1..=9 {
                check(width, columns);
            }
        }
    }

    /// By the kernels for this machine, and by the portable twin.
    fn check(width: usize, columns: usize) {
        const ROWS: usize = 150;
        let numbers: Vec<u64> =
            (0..200).map(|n: u64| n.wrapping_mul(0x9123_4567_89ab_cdef)).collect();
        let values: Vec<u8> =
            numbers.iter().flat_map(|n| n.to_le_bytes()[..width].to_vec()).collect();
        let bits: Vec<u8> = (0..30).map(|n: u8| n.wrapping_mul(37)).collect();
        let ones = u64::MAX >> (64 - 8 * width);
        let top = ones ^ ones >> 1;
        let lane = |column: usize| {
            let flip = if column.is_multiple_of(2) { top } else { ones };
            let float = if column.is_multiple_of(3) { ones ^ top } else { 0 };
            let valid = [None, Some(Bits { bytes: &bits, first: column })][column / 2 % 2];
            let code = Code { flip, float, delta: 0, null: 0, big: true, escapes: false };
            Lane { values: &values[column * width..], valid, code }
        };
        let lanes: Vec<Lane<'_>> = (0..columns).map(lane).collect();
        let nulls: Vec<u8> = (0..columns).map(|column| [0, 0xff][column / 4 % 2]).collect();
        let stride = columns * (width + 1) + 2;
        let mut expected = vec![0xaa; 3 + ROWS * stride];
        for row in 0..ROWS {
            for (column, lane) in lanes.iter().enumerate() {
                let value = numbers[column + row] & ones;
                let negative = value & top != 0;
                let code = value ^ if negative { lane.code.float } else { 0 } ^ lane.code.flip;
                let is_valid = lane.valid.is_none_or(|bits| bits.word(row) & 1 == 1);
                let cell = &mut expected[3 + row * stride + column * (width + 1)..][..width + 1];
                cell[0] = if is_valid { VALUE } else { nulls[column] };
                let code = if is_valid { code } else { 0 };
                cell[1..].copy_from_slice(&code.to_be_bytes()[8 - width..]);
            }
        }
        let mut portable = vec![0xaa; expected.len()];
        let places = Strided { first: 3, stride };
        put_block(&lanes, &nulls, width, 0..ROWS, 0, places, &mut portable);
        assert_eq!(portable, expected, "portable, {columns} columns of {width}");
        #[cfg(target_arch = "x86_64")]
        if let ([a, b, c, d], [w, x, y, z]) = (&lanes[..], &nulls[..])
            && std::arch::is_x86_feature_detected!("avx2")
        {
            let (lanes, nulls) = ([a, b, c, d], [*w, *x, *y, *z]);
            let mut narrow = vec![0xaa; expected.len()];
            // SAFETY: AVX2 was detected; there is room for the cells, and values and bits for the rows.
            unsafe {
                super::super::avx2::put_cells(lanes, width, 0..ROWS, nulls, places, &mut narrow);
            }
            assert_eq!(narrow, expected, "AVX2, columns of {width}");
        }
        let cells = Cells::new(lanes, nulls, width);
        let mut out = vec![0xaa; expected.len()];
        put_cells(&cells, 0..70, places, &mut out);
        put_cells(&cells, 70..ROWS, Strided { first: 3 + 70 * stride, stride }, &mut out);
        assert_eq!(out, expected, "{columns} columns of {width}");
        out.fill(0xaa);
        let cursors: Vec<usize> = (0..ROWS).map(|row| row * stride).collect();
        put_cells(&cells, 0..ROWS, Scattered { cursors: &cursors, distance: 3 }, &mut out);
        assert_eq!(out, expected, "{columns} columns of {width}, scattered");
        // Cells and nothing else.
        let tight = Strided { first: 0, stride: cells.bytes() };
        let mut out = vec![0xaa; ROWS * tight.stride];
        put_cells(&cells, 0..ROWS, tight, &mut out);
        for (row, out) in out.chunks(tight.stride).enumerate() {
            assert_eq!(out, &expected[3 + row * stride..][..tight.stride], "row {row}");
        }
    }
}
