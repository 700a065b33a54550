//! Rows of numbers, some of which take a byte more than most: one row after the other.
//!
//! A number of four or eight bytes whose code is taken by the null is written as all zeros or all
//! ones and a byte more. Where that is common, columns cannot be written one after the other; rows
//! are, each behind the end of the one before.

use super::lane::{Lane, Lanes};

/// Appends all rows of `runs` to `out` from `at` on, and where each ends to `ends`. Returns the end
/// of the last one, or nothing if `out` is too short.
pub(crate) fn put_growing(
    runs: &[Lanes<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> Option<usize> {
    for row in 0..rows {
        for lanes in runs {
            at = match lanes.width() {
                4 => put_row::<4>(lanes.all(), row, at, out)?,
                _ => put_row::<8>(lanes.all(), row, at, out)?,
            };
        }
        ends.push(u32::try_from(at).ok()?);
    }
    Some(at)
}

/// One row of columns of `W` bytes.
#[inline(always)]
fn put_row<const W: usize>(
    lanes: &[Lane<'_>],
    row: usize,
    mut at: usize,
    out: &mut [u8],
) -> Option<usize> {
    let ones = u64::MAX >> (64 - 8 * W);
    for lane in lanes {
        let code = lane.code;
        let mut word = [0; 8];
        word[..W].copy_from_slice(lane.values.get(row * W..row * W + W)?);
        let mut value = u64::from_le_bytes(word);
        if cfg!(target_endian = "big") {
            value = value.swap_bytes() >> (64 - 8 * W);
        }
        if code.float != 0 && value >> (8 * W - 1) == 1 {
            value ^= code.float;
        }
        let shifted = (value ^ code.flip).wrapping_add(code.delta) & ones;
        let null = lane.valid.is_some_and(|valid| !valid.get(row));
        let longer = code.escapes && !null && (shifted == 0 || shifted == ones);
        let word = if null { code.null } else { shifted };
        let word = if longer { !code.null & ones } else { word };
        // The byte behind is written at all times: it is part of the code, or written again.
        let target = out.get_mut(at..at + W + 1)?;
        if code.big {
            target[..W].copy_from_slice(&word.to_be_bytes()[8 - W..]);
        } else {
            target[..W].copy_from_slice(&word.to_le_bytes()[..W]);
        }
        target[W] = u8::from(shifted == 0);
        at += W + usize::from(longer);
    }
    Some(at)
}
