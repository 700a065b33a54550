//! Columns to cells: a marker byte in front of every code.
//!
//! ```text
//! | 01 | code of a value: W bytes |    | null marker | zeros |
//! ```
//!
//! The codes of 64 rows of a column are made in registers, side by side, and then stored one by one behind their markers.

use std::hint::select_unpredictable;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::lane::Lane;
use super::places::{Anywhere, Places, check_bounds, of_any};
use super::portable::Portable;
use super::put::Constants;
use super::vector::{Kernel, Level, Vector};

/// The marker of a value.
pub(super) const VALUE: u8 = 1;
/// Rows whose codes are made before they are stored: bits of a word of validity.
const ROWS: usize = 64;

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
    /// If the width is another, there are not as many lanes as markers, or a lane has a code for nulls.
    pub(crate) fn new(lanes: Vec<Lane<'a>>, nulls: Vec<u8>, width: usize) -> Self {
        assert!(width == 4 || width == 8, "numbers of 4 or 8 bytes");
        assert_eq!(lanes.len(), nulls.len(), "a marker for each lane");
        assert!(lanes.iter().all(|lane| !lane.code.escapes), "nulls are marked");
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
    put_by(cells, rows, places.anywhere(), out, Level::detected());
}

/// As [`put_cells`], by a level that was detected.
fn put_by(
    cells: &Cells<'_>,
    rows: Range<usize>,
    places: Anywhere<'_>,
    out: &mut [u8],
    level: Level,
) {
    assert!(rows.start <= rows.end, "rows in order");
    check_bounds(cells.bytes(), rows.len(), places, out.len());
    for lane in &cells.lanes {
        assert!(lane.values.len() / cells.width >= rows.end, "a value for each row");
        assert!(lane.valid.is_none_or(|bits| bits.holds(rows.end)), "a bit for each row");
    }
    let out = out.as_mut_ptr();
    // SAFETY: the level was detected; cells, values and bits were checked above.
    unsafe {
        match cells.width {
            4 => level.run(Put::<'_, 4> { cells, rows, places, out }),
            _ => level.run(Put::<'_, 8> { cells, rows, places, out }),
        }
    }
}

/// Writes cells of `W` bytes and a marker.
struct Put<'a, const W: usize> {
    cells: &'a Cells<'a>,
    rows: Range<usize>,
    places: Anywhere<'a>,
    out: *mut u8,
}

impl<const W: usize> Kernel for Put<'_, W> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Cells { lanes, nulls, .. } = self.cells;
        let mut codes = [MaybeUninit::<u64>::uninit(); ROWS];
        let codes = codes.as_mut_ptr().cast::<u8>();
        let mut first = 0;
        while first < self.rows.len() {
            let (row, count) = (self.rows.start + first, ROWS.min(self.rows.len() - first));
            for (at, (lane, &null)) in lanes.iter().zip(nulls).enumerate() {
                let valid = match lane.valid {
                    Some(bits) => bits.word(row),
                    None => u64::MAX,
                };
                // SAFETY: as the trait's: the lane holds these rows, whose cells lie within `out`; the codes of 64 rows
                // have room.
                unsafe {
                    match count < V::rows(W) {
                        true => make::<Portable, W>(lane, row, count, valid, codes),
                        false => make::<V, W>(lane, row, count, valid, codes),
                    }
                    let places = self.places.shifted(at * (W + 1)).behind(first);
                    of_any!(places, places => {
                        scatter::<W>(codes, count, (valid, null), places, self.out);
                    });
                }
            }
            first += count;
        }
    }
}

/// Writes `count` codes behind their markers.
///
/// # Safety
/// They are there; the cells of these rows lie within `out`.
#[inline(always)]
unsafe fn scatter<const W: usize>(
    codes: *const u8,
    count: usize,
    (mut valid, null): (u64, u8),
    places: impl Places,
    out: *mut u8,
) {
    for row in 0..count {
        // SAFETY: as this function's.
        unsafe {
            let cell = out.add(places.place(row));
            cell.write(select_unpredictable(valid & 1 == 1, VALUE, null));
            let code = codes.add(row * W).cast::<[u8; W]>().read();
            cell.add(1).cast::<[u8; W]>().write(code);
        }
        valid >>= 1;
    }
}

/// Writes the codes of `count` rows from `row` on to `codes`; those that are not `valid` are zeros.
///
/// # Safety
/// The CPU has the instruction set of `V`; the lane holds the rows, as many as in a register or more; there is room.
#[inline(always)]
unsafe fn make<V: Vector, const W: usize>(
    lane: &Lane<'_>,
    row: usize,
    count: usize,
    valid: u64,
    codes: *mut u8,
) {
    let group = V::rows(W);
    // SAFETY: as this function's.
    unsafe {
        let with = Constants::<V>::of::<W>(&lane.code);
        let values = lane.values.as_ptr().add(row * W);
        let mut edges = V::mask::<W>(0);
        let mut at = 0;
        while at < count {
            // The last rows, and some once more, where a register is not filled by them.
            let first = at.min(count - group);
            let v = V::load::<W>(values.add(first * W));
            let code = with.code::<W, true>(v, valid >> first, &mut edges);
            code.store::<W>(codes.add(first * W));
            at += group;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lane::{Bits, Code};
    use super::super::places::{Scattered, Strided};
    use super::*;

    #[test]
    fn cells_are_markers_and_codes() {
        for width in [4, 8] {
            for columns in 1..=9 {
                for rows in [0, 1, 3, 7, 64, 150] {
                    check(width, columns, rows);
                }
            }
        }
    }

    fn check(width: usize, columns: usize, rows: usize) {
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
                let code = value ^ if negative { lane.code.float } else { 0 } ^ lane.code.flip;
                let is_valid = lane.valid.is_none_or(|bits| bits.word(row) & 1 == 1);
                let cell = &mut expected[3 + row * stride + column * (width + 1)..][..width + 1];
                cell[0] = if is_valid { VALUE } else { nulls[column] };
                let code = if is_valid { code } else { 0 };
                cell[1..].copy_from_slice(&code.to_be_bytes()[8 - width..]);
            }
        }
        let cells = Cells::new(lanes, nulls, width);
        let cursors: Vec<usize> = (0..rows).map(|row| row * stride).collect();
        for level in Level::all() {
            let mut out = vec![0xaa; expected.len()];
            let half = rows / 2;
            let front = Strided { first: 3, stride };
            put_by(&cells, 0..half, front.anywhere(), &mut out, level);
            let behind = Strided { first: 3 + half * stride, stride };
            put_by(&cells, half..rows, behind.anywhere(), &mut out, level);
            assert_eq!(out, expected, "{columns} columns of {width}, {level:?}");
            out.fill(0xaa);
            let places = Scattered { cursors: &cursors, distance: 3 };
            put_by(&cells, 0..rows, places.anywhere(), &mut out, level);
            assert_eq!(out, expected, "{columns} columns of {width}, scattered, {level:?}");
        }
    }
}
