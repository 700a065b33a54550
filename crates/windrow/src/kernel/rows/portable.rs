//! The portable twins, and the last few rows of every block.

use std::ops::Range;

use super::lane::{Code, Lane, LaneOut, Places, Word};

/// All bits of a number of `W` bytes.
const fn ones(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width)
}

/// The number of `width` bytes at `at`, as the machine has it.
#[inline(always)]
pub(super) fn read(width: usize, bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    if cfg!(target_endian = "big") {
        word[..width].reverse();
    }
    u64::from_le_bytes(word)
}

#[inline(always)]
fn signed(width: usize, code: &Code, value: u64) -> u64 {
    if value >> (8 * width - 1) == 1 { value ^ code.float } else { value }
}

/// The value of a code that has no null, read as the machine's number.
#[inline(always)]
pub(super) fn number(width: usize, code: &Code, mut word: u64) -> u64 {
    if code.big && cfg!(target_endian = "little") {
        word = word.swap_bytes() >> (64 - 8 * width);
    }
    signed(width, code, word ^ code.flip)
}

/// Rows from the one at `from` on, as `put` of the module.
pub(super) fn put<const W: usize, P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    from: usize,
    places: P,
    out: &mut [u8],
) -> bool {
    let ones = ones(W);
    let mut escaped = false;
    for (index, lane) in lanes.iter().enumerate() {
        let code = lane.code;
        for at in from..rows.len() {
            let row = rows.start + at;
            let value = read(W, lane.values, row * W);
            let shifted = (signed(W, &code, value) ^ code.flip).wrapping_add(code.delta) & ones;
            let word = if lane.valid.is_some_and(|valid| !valid.get(row)) {
                code.null
            } else {
                escaped |= code.escapes && (shifted == 0 || shifted == ones);
                shifted
            };
            let start = places.place(at) + index * W;
            let target = &mut out[start..start + W];
            if code.big || cfg!(target_endian = "big") {
                target.copy_from_slice(&word.to_be_bytes()[8 - W..]);
            } else {
                target.copy_from_slice(&word.to_le_bytes()[..W]);
            }
        }
    }
    escaped
}

/// Rows from `from` on, which is a multiple of 4, as `take` of the module.
pub(super) fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    from: usize,
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let width = size_of::<T>();
    let ones = ones(width);
    let mut fits = true;
    for (index, lane) in lanes.iter_mut().enumerate() {
        let code = lane.code;
        for row in from..rows {
            let mut word = read(width, bytes, places.place(row) + index * width);
            if code.big && cfg!(target_endian = "little") {
                word = word.swap_bytes() >> (64 - 8 * width);
            }
            let null = code.escapes && word == code.null;
            fits &= !(code.escapes && word == !code.null & ones);
            let shifted = (word.wrapping_sub(code.delta) & ones) ^ code.flip;
            lane.values.push(T::of(if null { 0 } else { signed(width, &code, shifted) }));
            if row % 64 == 0 {
                lane.valid[row / 64] = 0;
            }
            lane.valid[row / 64] |= u64::from(!null) << (row % 64);
        }
    }
    fits
}
