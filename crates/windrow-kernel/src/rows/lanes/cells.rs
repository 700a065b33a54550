//! Writes columns as cells: a marker byte before every code.
//!
//! ```text
//! | 01 | code of a value: W bytes |    | null marker | zeros |
//! ```
//!
//! One column after the other, 64 rows at a time, one number at a time: two stores a cell dominate
//! the cost, and making codes in registers first took as long.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::lane::{Code, Lane};
use super::places::{Places, check_bounds};
use super::portable::Portable;
use super::put::Constants;
use super::vector::Vector;

/// The marker of a value.
pub(super) const VALUE: u8 = 1;
/// Rows of a column written before the next column: bits of a word of validity.
const ROWS: usize = 64;

/// Adjacent columns of one width, and the markers of their nulls.
///
/// Invariant: numbers of 4, 8 or 16 bytes; as many markers as lanes.
#[derive(Debug)]
pub struct Cells<'a> {
    lanes: Vec<Lane<'a>>,
    nulls: Vec<u8>,
    width: usize,
}

impl<'a> Cells<'a> {
    /// Creates columns of `width` bytes, 4, 8 or 16, with the markers `nulls` for null rows. For 16,
    /// the constants of a code are for the upper half.
    ///
    /// # Panics
    /// If `width` is none of these, if the numbers of lanes and markers differ, or if a lane's codes
    /// are not big-endian or encode nulls.
    pub fn new(lanes: Vec<Lane<'a>>, nulls: Vec<u8>, width: usize) -> Self {
        assert!(matches!(width, 4 | 8 | 16), "numbers of 4, 8 or 16 bytes");
        assert_eq!(lanes.len(), nulls.len(), "a marker for each lane");
        assert!(lanes.iter().all(|lane| !lane.code.escapes), "nulls are marked");
        assert!(lanes.iter().all(|lane| lane.code.big), "codes are big-endian");
        Self { lanes, nulls, width }
    }

    /// Returns the bytes that the cells take in a row.
    pub fn bytes(&self) -> usize {
        self.lanes.len() * (self.width + 1)
    }
}

/// Writes `cells` for `rows`; the cells of the first row begin at `places.place(0)`.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of a lane.
pub fn put_cells<P: Places>(cells: &Cells<'_>, rows: Range<usize>, places: P, out: &mut [u8]) {
    assert!(rows.start <= rows.end, "rows in order");
    check_bounds(cells.bytes(), rows.len(), places, out.len());
    for lane in &cells.lanes {
        assert!(lane.values.len() / cells.width >= rows.end, "a value for each row");
        assert!(lane.valid.is_none_or(|bits| bits.holds(rows.end)), "a bit for each row");
    }
    for first in rows.clone().step_by(ROWS) {
        let block = first..rows.end.min(first + ROWS);
        let mut places = places.behind(first - rows.start);
        for (lane, &null) in cells.lanes.iter().zip(&cells.nulls) {
            let valid = lane.valid.map_or(u64::MAX, |bits| bits.word(first));
            let (block, out) = (block.clone(), out.as_mut_ptr());
            // SAFETY: each lane has values and bits of the rows, as asserted, and `check_bounds`
            // checked that the cells lie within `out`. The width is 4, 8 or 16.
            unsafe {
                match (cells.width, valid) {
                    (4, u64::MAX) => put_block::<4, false>(lane, block, valid, null, places, out),
                    (4, _) => put_block::<4, true>(lane, block, valid, null, places, out),
                    (8, u64::MAX) => put_block::<8, false>(lane, block, valid, null, places, out),
                    (8, _) => put_block::<8, true>(lane, block, valid, null, places, out),
                    _ => put_block::<16, true>(lane, block, valid, null, places, out),
                }
            }
            places = places.shifted(cells.width + 1);
        }
    }
}

/// Writes the cells of a column of `W` bytes. `NULLS` if not all rows are `valid`.
///
/// # Safety
/// The lane has a value for each of `rows`, at most 64. The cells lie within `out` at their places.
#[inline(always)]
unsafe fn put_block<const W: usize, const NULLS: bool>(
    lane: &Lane<'_>,
    rows: Range<usize>,
    valid: u64,
    null: u8,
    places: impl Places,
    out: *mut u8,
) {
    // SAFETY: the caller provides a value and a cell for each row.
    unsafe {
        // Repeats the constant for the compiler, which then drops the test from the loop.
        let with = Constants::<Portable>::of::<W>(&Code { big: true, ..lane.code });
        let values = lane.values.as_ptr().add(rows.start * W);
        for at in 0..rows.len() {
            let (v, valid) = (Portable::load::<W>(values.add(at * W)), valid >> at);
            let cell = out.add(places.place(at));
            cell.write(select_unpredictable(!NULLS || valid & 1 == 1, VALUE, null));
            with.code::<W, false, NULLS>(v, valid, &mut false).store::<W>(cell.add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lane::Bits;
    use super::super::places::{Scattered, Strided};
    use super::*;

    #[test]
    fn cells_are_markers_and_codes() {
        for width in [4, 8, 16] {
            for columns in 1..=9 {
                for rows in [0, 1, 3, 7, 64, 150] {
                    check(width, columns, rows);
                }
            }
        }
    }

    fn check(width: usize, columns: usize, rows: usize) {
        let numbers: Vec<u128> = (0..200)
            .map(|n: u128| n.wrapping_mul(0x9123_4567_89ab_cdef << 64 | 0x89ab_cdef))
            .collect();
        let values: Vec<u8> =
            numbers.iter().flat_map(|n| n.to_le_bytes()[..width].to_vec()).collect();
        let bits: Vec<u8> = (0..30).map(|n: u8| n.wrapping_mul(37)).collect();
        let ones = u128::MAX >> (128 - 8 * width);
        let top = ones ^ ones >> 1;
        let flip = |column: usize| if column.is_multiple_of(2) { top } else { ones };
        let float =
            |column: usize| if column.is_multiple_of(3) && width < 16 { ones ^ top } else { 0 };
        let lane = |column: usize| {
            let flip = (flip(column) >> (8 * width.saturating_sub(8))) as u64;
            let float = float(column) as u64;
            let valid = [None, Some(Bits { bytes: &bits, first: column })][column / 2 % 2];
            let code = Code { flip, float, big: true, ..Code::RAW };
            Lane { values: &values[column * width..], valid, code }
        };
        let lanes: Vec<Lane<'_>> = (0..columns).map(lane).collect();
        let nulls: Vec<u8> = (0..columns).map(|column| [0, 0xff][column / 4 % 2]).collect();
        let stride = columns * (width + 1) + 2;
        let mut expected = vec![0xaa; 3 + rows * stride];
        for row in 0..rows {
            for (column, lane) in lanes.iter().enumerate() {
                let value = numbers[column + row] & ones;
                let negative = value & top != 0;
                let code = value ^ if negative { float(column) } else { 0 } ^ flip(column);
                let is_valid = lane.valid.is_none_or(|bits| bits.word(row) & 1 == 1);
                let cell = &mut expected[3 + row * stride + column * (width + 1)..][..width + 1];
                cell[0] = if is_valid { VALUE } else { nulls[column] };
                let code = if is_valid { code } else { 0 };
                cell[1..].copy_from_slice(&code.to_be_bytes()[16 - width..]);
            }
        }
        let cells = Cells::new(lanes, nulls, width);
        let cursors: Vec<usize> = (0..rows).map(|row| row * stride).collect();
        let mut out = vec![0xaa; expected.len()];
        let half = rows / 2;
        put_cells(&cells, 0..half, Strided { first: 3, stride }, &mut out);
        put_cells(&cells, half..rows, Strided { first: 3 + half * stride, stride }, &mut out);
        assert_eq!(out, expected, "{columns} columns of {width}");
        out.fill(0xaa);
        put_cells(&cells, 0..rows, Scattered { cursors: &cursors, distance: 3 }, &mut out);
        assert_eq!(out, expected, "{columns} columns of {width}, scattered");
    }
}
