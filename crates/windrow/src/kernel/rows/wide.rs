//! Numbers of sixteen bytes: decimals. A value is two stores, and memory is what bounds them.

use std::ops::Range;

use super::lane::{Code, Lane, Places};
use crate::kernel::values::Values;

/// Bytes of a value.
pub(super) const WIDE: usize = 16;

/// What of `code`, which is for 64 bits, turns a value of 128 into its code: no nulls, and no floats.
fn flip(code: &Code) -> u128 {
    let low = 0u64.wrapping_sub(code.flip & 1);
    u128::from(code.flip) << 64 | u128::from(low)
}

/// Writes adjacent columns, as `put` of the module; nulls are zeros.
///
/// Benefit: unchecked, 2x the loop that is not.
///
/// # Safety
/// Lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i * 16`; each lane holds values
/// and validity bits of all `rows`.
pub(super) unsafe fn put<P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) {
    let start = out.as_mut_ptr();
    for (index, lane) in lanes.iter().enumerate() {
        let (flip, places) = (flip(&lane.code), places.shifted(index * WIDE));
        let values = lane.values.as_ptr();
        for (at, row) in rows.clone().enumerate() {
            // SAFETY: as this function's.
            unsafe {
                let value = values.add(row * WIDE).cast::<u128>().read_unaligned();
                let valid = lane.valid.is_none_or(|valid| valid.get(row));
                let code = if valid { value ^ flip } else { 0 };
                let code = if lane.code.big { code.to_be() } else { code };
                start.add(places.place(at)).cast::<u128>().write_unaligned(code);
            }
        }
    }
}

/// Appends the values of a column of `rows` rows of `bytes` to `values`.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub(crate) fn take_wide<P: Places>(
    code: &Code,
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut Values<u128>,
) {
    super::check_bounds(WIDE, rows, places, bytes.len());
    let (start, flip) = (bytes.as_ptr(), flip(code));
    let target = values.room(rows);
    for row in 0..rows {
        // SAFETY: the furthest place was checked above, and there is room for a value of each row.
        unsafe {
            let word = start.add(places.place(row)).cast::<u128>().read_unaligned();
            target.add(row).write((if code.big { u128::from_be(word) } else { word }) ^ flip);
        }
    }
    // SAFETY: all of them were written.
    unsafe { values.grow(rows) };
}

#[cfg(test)]
mod tests {
    use super::super::lane::{Lanes, Strided};
    use super::*;

    #[test]
    fn wide_numbers_are_written_in_order_and_read_back() {
        const ROWS: usize = 50;
        let numbers: Vec<i128> =
            (0..ROWS as i128).map(|n| (n - 25) * 0x1234_5678_9abc_def0_0fed_cba9).collect();
        let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        for descending in [false, true] {
            let flip = if descending { u64::MAX >> 1 } else { 1 << 63 };
            let code = Code { flip, float: 0, delta: 0, null: 0, big: true, escapes: false };
            let lanes = vec![Lane { values: &values, valid: None, code }; 2];
            let lanes = Lanes::new(lanes, WIDE, ROWS);
            let mut out = vec![0; 3 + ROWS * 40];
            let places = Strided { first: 3, stride: 40 };
            super::super::put(&lanes, 0..ROWS, places, &mut out);
            let code_of = |row: usize| &out[3 + row * 40 + WIDE..][..WIDE];
            for row in 1..ROWS {
                let order = code_of(row - 1).cmp(code_of(row));
                assert_eq!(order, if descending { 1.cmp(&0) } else { 0.cmp(&1) });
            }
            let mut back = Values::with_capacity(ROWS);
            take_wide(&code, ROWS, places.shifted(WIDE), &out, &mut back);
            assert!(
                back.as_ref().iter().zip(&numbers).all(|(back, number)| *back as i128 == *number)
            );
        }
    }
}
