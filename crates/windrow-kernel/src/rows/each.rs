//! Reads values of any width out of rows, one column after the other, where no kernel reads several
//! columns at once.
//!
//! ```text
//! | .. | v v v | .. |      the bytes of a value, at any position: converted by the caller
//! | .. | v v v | .. |      ([`take_each`], [`take_some`])
//! | n  | .......... |      one bit of a byte per row, 64 rows per word ([`take_flags`])
//! ```
//!
//! Bounds are checked once for all rows: a check for each value would cost as much as the work on
//! it.

use arrow_buffer::ArrowNativeType;

use super::lanes::{Places, check_bounds};
use crate::values::Values;

/// Rows of a word of bits.
const WORD: usize = 64;

/// Converts the `width` bytes of each of the first `rows` rows with `value` and appends the results
/// to `values`.
///
/// # Panics
/// If a place lies outside of `bytes`.
#[inline(always)]
pub fn take_each<T: ArrowNativeType, P: Places>(
    width: usize,
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut Values<T>,
    value: impl Fn(&[u8]) -> T,
) {
    check_bounds(width, rows, places, bytes.len());
    let target = values.room(rows);
    for row in 0..rows {
        // SAFETY: the places of all rows were checked, and `target` has space for a value of each.
        unsafe { target.add(row).write(value(read(width, bytes, places.place(row)))) };
    }
    // SAFETY: a value of each row was written.
    unsafe { values.grow(rows) };
}

/// The result of reading a row.
#[derive(Clone, Copy, Debug)]
pub struct Read<T> {
    pub value: T,
    /// Whether the value is valid; otherwise it stands for a null.
    pub valid: bool,
    /// Whether the bytes can be read this way at all.
    pub fits: bool,
}

/// Reads values as [`take_each`] does, with nulls, and appends 64 rows a word to `valid`. Returns
/// false if a row cannot be read this way; the appended values are then useless.
///
/// # Panics
/// If a place lies outside of `bytes`.
#[inline(always)]
pub fn take_some<T: ArrowNativeType, P: Places>(
    width: usize,
    rows: usize,
    places: P,
    bytes: &[u8],
    values: &mut Values<T>,
    valid: &mut Vec<u64>,
    value: impl Fn(&[u8]) -> Read<T>,
) -> bool {
    check_bounds(width, rows, places, bytes.len());
    let target = values.room(rows);
    let mut fits = true;
    valid.reserve(rows.div_ceil(WORD));
    for first in (0..rows).step_by(WORD) {
        let mut word = 0;
        for row in first..rows.min(first + WORD) {
            // SAFETY: the places of all rows were checked.
            let some = value(unsafe { read(width, bytes, places.place(row)) });
            // SAFETY: `target` has space for a value of each row.
            unsafe { target.add(row).write(some.value) };
            word |= u64::from(some.valid) << (row - first);
            fits &= some.fits;
        }
        valid.push(word);
    }
    // SAFETY: a value of each row was written.
    unsafe { values.grow(rows) };
    fits
}

/// # Safety
/// `bytes` reaches to `at + width`.
#[inline(always)]
unsafe fn read(width: usize, bytes: &[u8], at: usize) -> &[u8] {
    // SAFETY: the caller promises that `bytes` reaches to `at + width`.
    unsafe { bytes.get_unchecked(at..at + width) }
}

/// Appends a bit of the byte of each of the first `rows` rows to each of `flags`, 64 rows a word:
/// the bit with the number beside the vector. Bits after the last row are zeros.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub fn take_flags<P: Places>(
    flags: &mut [(usize, &mut Vec<u64>)],
    rows: usize,
    places: P,
    bytes: &[u8],
) {
    check_bounds(1, rows, places, bytes.len());
    for first in (0..rows).step_by(WORD) {
        let mut heads = [0u8; WORD];
        for (row, head) in (first..rows.min(first + WORD)).zip(&mut heads) {
            // SAFETY: the places of all rows were checked.
            *head = unsafe { *bytes.get_unchecked(places.place(row)) };
        }
        for (bit, words) in &mut *flags {
            words.push(bits_of(&heads, *bit));
        }
    }
}

/// Returns bit `bit` of each byte.
#[inline]
fn bits_of(heads: &[u8; WORD], bit: usize) -> u64 {
    // One multiplication collects eight bits, eight apart, in the highest byte.
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOGETHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = heads.as_chunks::<8>();
    let word = |eight: &[u8; 8]| {
        (u64::from_le_bytes(*eight) >> bit & ONES).wrapping_mul(TOGETHER) >> (u64::BITS - 8)
    };
    eights.iter().rev().fold(0, |bits, eight| bits << 8 | word(eight))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lanes::{Scattered, Strided};
    use super::super::raw::take_raw;
    use super::*;

    proptest! {
        #[test]
        fn values_are_what_is_at_their_places(
            bytes in prop::collection::vec(any::<u8>(), 0..4000),
            width in 1usize..50,
            gap in 0usize..5,
            flip: bool,
            bits in prop::collection::vec(0usize..8, 0..4),
        ) {
            let stride = width + gap;
            let rows = (bytes.len() + gap) / stride;
            let flip = if flip { 0xff } else { 0 };
            let strided = Strided { first: 0, stride };
            let cursors: Vec<usize> = (0..rows).rev().map(|row| row * stride).collect();
            let scattered = Scattered { cursors: &cursors, distance: 0 };
            let value = |place: usize| bytes[place..place + width].iter().map(|byte| byte ^ flip);
            let expected: Vec<u8> = (0..rows).flat_map(|row| value(row * stride)).collect();
            let mut values = Values::<u8>::with_capacity(0);
            take_raw(width, flip, rows, strided, &bytes, &mut values);
            prop_assert_eq!(values.as_ref(), &expected[..]);
            let turned: Vec<u8> = (0..rows).rev().flat_map(|row| value(row * stride)).collect();
            take_raw(width, flip, rows, scattered, &bytes, &mut values);
            prop_assert_eq!(values.as_ref(), &[expected, turned].concat());
            let mut flags = vec![Vec::new(); bits.len()];
            let mut wanted: Vec<_> = bits.iter().copied().zip(&mut flags).collect();
            take_flags(&mut wanted, rows, scattered, &bytes);
            for (bit, words) in bits.iter().zip(&flags) {
                prop_assert_eq!(words.len(), rows.div_ceil(WORD));
                for row in 0..words.len() * WORD {
                    let is_set = row < rows && bytes[cursors[row]] >> bit & 1 == 1;
                    prop_assert_eq!(words[row / WORD] >> (row % WORD) & 1 == 1, is_set);
                }
            }
        }

        #[test]
        fn values_are_what_is_made_of_their_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..900),
            gap in 0usize..3,
        ) {
            let stride = 2 + gap;
            let rows = (bytes.len() + gap) / stride;
            let places = Strided { first: 0, stride };
            let (mut values, mut some) = (Values::with_capacity(0), Values::with_capacity(0));
            let mut valid = Vec::new();
            let number = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
            take_each(2, rows, places, &bytes, &mut values, number);
            let value = |bytes: &[u8]| Read {
                value: number(bytes),
                valid: bytes[0] < 99,
                fits: bytes[1] != 7,
            };
            let fits = take_some(2, rows, places, &bytes, &mut some, &mut valid, value);
            let cells = (0..rows).map(|row| [bytes[row * stride], bytes[row * stride + 1]]);
            let expected: Vec<u16> = cells.clone().map(u16::from_be_bytes).collect();
            prop_assert_eq!(values.as_ref(), &expected[..]);
            prop_assert_eq!(some.as_ref(), &expected[..]);
            prop_assert_eq!(fits, cells.clone().all(|cell| cell[1] != 7));
            prop_assert_eq!(valid.len(), rows.div_ceil(WORD));
            for (row, cell) in cells.enumerate() {
                prop_assert_eq!(valid[row / WORD] >> (row % WORD) & 1 == 1, cell[0] < 99);
            }
        }
    }
}
