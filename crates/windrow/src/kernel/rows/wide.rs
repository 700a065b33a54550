//! Numbers of sixteen bytes: decimals.
//!
//! ```text
//! | a | b | c | d |     the upper half of a number gets the code for 64 bits; what complements that
//! | a | b | c | d |     complements the lower half too
//! ```

use std::ops::Range;

use super::each::{Read, take_some};
use super::lane::{Code, Lane, Places};
use crate::kernel::values::Values;

/// Bytes of a value.
pub(super) const WIDE: usize = 16;

/// What of `code`, which is for 64 bits, turns a value of 128 into its code: no nulls, and no floats.
pub(super) fn flip(code: &Code) -> u128 {
    let low = 0u64.wrapping_sub(code.flip & 1);
    u128::from(code.flip) << 64 | u128::from(low)
}

/// What `code` adds to codes to make room for that of a null, and this: 1 and zeros, or all ones and these.
pub(super) fn moved(code: &Code) -> (u128, u128) {
    let wide = |word: u64| if word <= 1 { u128::from(word) } else { u128::MAX };
    (wide(code.delta), wide(code.null))
}

/// Writes adjacent columns, as `put` of the module.
///
/// # Safety
/// Lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i * 16`; each lane holds values
/// and validity bits of all `rows`.
pub(super) unsafe fn put<P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; the rest as this function's.
        return unsafe { super::avx512::put_wide(lanes, rows, places, out) };
    }
    // SAFETY: as this function's.
    unsafe { put_each(lanes, rows, places, out) }
}

/// The portable twin.
///
/// Benefit: unchecked, 2x the loop that is not.
///
/// # Safety
/// As [`put`].
unsafe fn put_each<P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    let start = out.as_mut_ptr();
    let mut escaped = false;
    for (index, lane) in lanes.iter().enumerate() {
        let (flip, places) = (flip(&lane.code), places.shifted(index * WIDE));
        let ((delta, null), escapes) = (moved(&lane.code), lane.code.escapes);
        let values = lane.values.as_ptr();
        for first in rows.clone().step_by(64) {
            let valid = lane.valid.map_or(u64::MAX, |valid| valid.word(first));
            for row in first..rows.end.min(first + 64) {
                // SAFETY: as this function's.
                unsafe {
                    let value = values.add(row * WIDE).cast::<u128>().read_unaligned();
                    let is_valid = valid >> (row - first) & 1 == 1;
                    let code = (value ^ flip).wrapping_add(delta);
                    escaped |= escapes & is_valid & (code.wrapping_add(1) <= 1);
                    let code = if is_valid { code } else { null };
                    let code = if lane.code.big { code.to_be() } else { code };
                    let to = start.add(places.place(row - rows.start));
                    to.cast::<u128>().write_unaligned(code);
                }
            }
        }
    }
    escaped
}

/// Appends the values of adjacent columns of `rows` rows of `bytes` to `values`, of each column.
///
/// # Panics
/// If a place lies outside of `bytes`, or there are not as many columns as codes.
pub(crate) fn take_wide<P: Places>(
    codes: &[Code],
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut [Values<u128>],
) {
    super::check_bounds(codes.len() * WIDE, rows, places, bytes.len());
    assert_eq!(codes.len(), values.len(), "values of each column");
    let targets: Vec<*mut u128> = values.iter_mut().map(|values| values.room(rows)).collect();
    let mut done = 0;
    // SAFETY: the furthest place was checked above, and there is room for a value of each row; all of them
    // were written when they are said to be there. The features were detected.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            done = super::avx512::take_wide(codes, &targets, rows, places, bytes.as_ptr());
        }
        take_each(codes, &targets, done..rows, places, bytes.as_ptr());
        values.iter_mut().for_each(|values| values.grow(rows));
    }
}

/// The portable twin, and the last few: those of `rows`.
///
/// # Safety
/// Column `i` of row `n` lies within `bytes` at `places.place(n) + i * 16`; each target has room for a value
/// of all rows up to the last.
unsafe fn take_each<P: Places>(
    codes: &[Code],
    targets: &[*mut u128],
    rows: Range<usize>,
    places: P,
    bytes: *const u8,
) {
    for (index, (code, target)) in codes.iter().zip(targets).enumerate() {
        let (flip, places) = (flip(code), places.shifted(index * WIDE));
        for row in rows.clone() {
            // SAFETY: as this function's.
            unsafe {
                let word = bytes.add(places.place(row)).cast::<u128>().read_unaligned();
                target.add(row).write((if code.big { u128::from_be(word) } else { word }) ^ flip);
            }
        }
    }
}

/// Appends the values of a column that may be null of `rows` rows of `bytes` to `values`, a null as zero, and to
/// `valid` which are not, 64 rows a word. False if one of them takes a byte more; what was appended is then of no use.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub(crate) fn take_wide_some<P: Places>(
    code: &Code,
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut Values<u128>,
    valid: &mut Vec<u64>,
) -> bool {
    super::check_bounds(WIDE, rows, places, bytes.len());
    let (mut done, mut fits) = (0, true);
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        done = rows / 64 * 64;
        let target = values.room(rows);
        // SAFETY: the features were detected; the furthest place was checked above, and there is room for a value of
        // each row; all of them were written when they are said to be there.
        unsafe {
            fits = super::avx512::take_wide_some(code, done, places, bytes.as_ptr(), target, valid);
            values.grow(done);
        }
    }
    fits & take_some_each(code, rows - done, places.behind(done), bytes, values, valid)
}

/// The portable twin.
fn take_some_each<P: Places>(
    code: &Code,
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut Values<u128>,
    valid: &mut Vec<u64>,
) -> bool {
    let (flip, up) = (flip(code), code.null == 0);
    take_some(WIDE, rows, places, bytes, values, valid, |code| {
        let (word, _) = code.as_chunks::<WIDE>();
        let code = u128::from_be_bytes(word[0]);
        let edge = code == 0 || code == u128::MAX;
        let shifted = if up { code.wrapping_sub(1) } else { code.wrapping_add(1) };
        let value = if edge { 0 } else { shifted ^ flip };
        Read { value, valid: !edge, fits: !edge || (code == 0) == up }
    })
}

#[cfg(test)]
mod tests {
    use arrow_buffer::Buffer;
    use proptest::prelude::*;

    use super::super::lane::{Bits, Strided};
    use super::super::lanes::Lanes;
    use super::*;

    /// Any number, the least and the greatest and those next to them, and such as carry between their halves.
    fn number() -> impl Strategy<Value = i128> {
        let edges =
            (prop::sample::select(vec![0, i128::MIN, 1 << 64, u64::MAX as i128]), -2i128..3);
        prop_oneof![any::<i128>(), edges.prop_map(|(edge, by)| edge.wrapping_add(by))]
    }

    proptest! {
        #[test]
        fn nulls_among_the_codes_are_written_alike(
            numbers in prop::collection::vec(number(), 1..80),
            kinds in prop::collection::vec((0usize..3, any::<bool>(), any::<bool>()), 1..10),
            bits in prop::collection::vec(any::<u8>(), 12),
        ) {
            let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            let lanes = kinds.iter().map(|&(kind, descending, nulls)| {
                let flip = if descending { u64::MAX >> 1 } else { 1 << 63 };
                let (delta, null) = [(0, 0), (1, 0), (u64::MAX, u64::MAX)][kind];
                let code = Code { flip, float: 0, delta, null, big: true, escapes: delta != 0 };
                let valid = nulls.then_some(Bits { bytes: &bits, first: kind });
                Lane { values: &values, valid, code }
            });
            let lanes: Vec<Lane<'_>> = lanes.collect();
            let places = Strided { first: 0, stride: kinds.len() * WIDE };
            let mut out = vec![0xaa; numbers.len() * places.stride];
            let mut twin = out.clone();
            // SAFETY: there is room for the columns of all rows, whose values and bits there are.
            let escaped = unsafe { put_each(&lanes, 0..numbers.len(), places, &mut twin) };
            let lanes = Lanes::new(lanes, WIDE, numbers.len());
            let found = super::super::put(&lanes, 0..numbers.len(), places, &mut out);
            prop_assert_eq!((found, out), (escaped, twin));
        }
    }

    proptest! {
        #[test]
        fn wide_numbers_are_written_in_order_and_read_back(
            numbers in prop::collection::vec(any::<i128>(), 3..60),
            columns in prop::collection::vec((any::<bool>(), any::<bool>()), 1..10),
            bits in prop::collection::vec(any::<u8>(), 9),
            nullable: u16,
            first in 0usize..3,
        ) {
            let rows = numbers.len();
            let of_column = |column: usize| {
                let mut own = numbers.clone();
                own.rotate_left(column % rows);
                own
            };
            let values = |column: usize| -> Vec<u8> {
                of_column(column).iter().flat_map(|number| number.to_ne_bytes()).collect()
            };
            let values: Vec<Vec<u8>> = (0..columns.len()).map(values).collect();
            let code = |&(descending, big): &(bool, bool)| {
                let flip = if descending { u64::MAX >> 1 } else { 1 << 63 };
                Code { flip, float: 0, delta: 0, null: 0, big, escapes: false }
            };
            let codes: Vec<Code> = columns.iter().map(code).collect();
            let valid = |column: usize| {
                (nullable >> column & 1 == 1).then_some(Bits { bytes: &bits, first: column })
            };
            let lane = |column: usize| Lane {
                values: &values[column],
                valid: valid(column),
                code: codes[column],
            };
            let lanes: Vec<Lane<'_>> = (0..columns.len()).map(lane).collect();
            let stride = columns.len() * WIDE + 5;
            let (mut out, mut twin) = (vec![7; 3 + rows * stride], vec![7; 3 + rows * stride]);
            let places = Strided { first: 3, stride };
            // SAFETY: there is room for the columns of all rows, whose values and bits there are.
            unsafe { put_each(&lanes, first..rows, places, &mut twin) };
            let lanes = Lanes::new(lanes, WIDE, rows);
            super::super::put(&lanes, first..rows, places, &mut out);
            prop_assert_eq!(&out, &twin);
            let mut back: Vec<Values<u128>> =
                columns.iter().map(|_| Values::with_capacity(rows)).collect();
            let count = rows - first;
            // In two parts: values are appended.
            take_wide(&codes, 1, places, &out, &mut back);
            take_wide(&codes, count - 1, places.behind(1), &out, &mut back);
            for (column, back) in back.into_iter().enumerate() {
                let back = Buffer::from(back);
                let back = back.typed_data::<i128>();
                let is_valid = |row: usize| valid(column).is_none_or(|bits| bits.get(row));
                for (row, (found, number)) in
                    (first..).zip(back.iter().zip(&of_column(column)[first..]))
                {
                    let null = flip(&codes[column]) as i128;
                    prop_assert_eq!(*found, if is_valid(row) { *number } else { null });
                }
                let code_of = |row: usize| &out[3 + (row - first) * stride + column * WIDE..][..WIDE];
                for row in first + 1..rows {
                    if codes[column].big && is_valid(row - 1) && is_valid(row) {
                        let own = of_column(column);
                        let order = own[row - 1].cmp(&own[row]);
                        let order = if columns[column].0 { order.reverse() } else { order };
                        prop_assert_eq!(code_of(row - 1).cmp(code_of(row)), order);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn wide_numbers_that_may_be_null_are_read_by_both(
            codes in prop::collection::vec((0usize..6, any::<u128>()), 0..300),
            descending: bool,
            up: bool,
            longer: bool,
            gap in 0usize..3,
        ) {
            // Nulls, carries from one half to the other, and numbers; some of which take a byte more.
            let null = if up { 0 } else { u128::MAX };
            let code_of = |&(kind, number): &(usize, u128)| match kind {
                0 => null,
                1 => 1 << 64 | u128::from(longer),
                2 => (number << 64) | if up { 0 } else { u128::from(u64::MAX) },
                3 if longer => !null,
                _ => number,
            };
            let codes: Vec<u128> = codes.iter().map(code_of).collect();
            let stride = WIDE + gap;
            let mut bytes = vec![7; codes.len() * stride];
            for (row, code) in bytes.chunks_exact_mut(stride).zip(&codes) {
                row[..WIDE].copy_from_slice(&code.to_be_bytes());
            }
            let top = if descending { u64::MAX >> 1 } else { 1 << 63 };
            let half = if up { 0 } else { u64::MAX };
            let delta = if up { 1 } else { u64::MAX };
            let code = Code { flip: top, float: 0, delta, null: half, big: true, escapes: true };
            let number_code = code;
            let places = Strided { first: 0, stride };
            let (mut values, mut twin) = (Values::with_capacity(0), Values::with_capacity(0));
            let (mut valid, mut valid_twin) = (vec![], vec![]);
            let rows = codes.len();
            let fits = take_wide_some(&code, rows, places, &bytes, &mut values, &mut valid);
            let fits_twin = take_some_each(&code, rows, places, &bytes, &mut twin, &mut valid_twin);
            prop_assert_eq!(fits, fits_twin);
            prop_assert_eq!(fits, codes.iter().all(|&code| code != !null));
            if fits {
                prop_assert_eq!((&values, &valid), (&twin, &valid_twin));
                for (row, (&found, &code)) in values.as_ref().iter().zip(&codes).enumerate() {
                    prop_assert_eq!(valid[row / 64] >> (row % 64) & 1 == 1, code != null);
                    let value = if up { code.wrapping_sub(1) } else { code.wrapping_add(1) };
                    let value = value ^ flip(&number_code);
                    prop_assert_eq!(found, if code == null { 0 } else { value });
                }
            }
        }
    }
}
