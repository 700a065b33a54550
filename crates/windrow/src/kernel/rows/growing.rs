//! Rows of numbers, some of which take a byte more than most: one row after the other.
//!
//! A number of four or eight bytes whose code is taken by the null is written as all zeros or all
//! ones and a byte more. Where that is common, columns cannot be written one after the other; rows
//! are, each behind the end of the one before.

use std::ops::Range;

use super::lane::{Lane, Lanes};

/// Appends all rows of `runs` to `out` from `at` on, and where each ends to `ends`. Returns the end
/// of the last one, or nothing if `out` is too short or longer than 32 bits can tell.
pub(crate) fn put_growing(
    runs: &[Lanes<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> Option<usize> {
    u32::try_from(out.len()).ok()?;
    assert!(runs.iter().all(|lanes| lanes.rows() >= rows), "lanes hold a value for each row");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && runs.iter().all(|lanes| lanes.width() == 8) {
        let blocks: Vec<&[Lane<'_>]> =
            runs.iter().flat_map(|lanes| lanes.all().chunks(super::BLOCK)).collect();
        // SAFETY: AVX2 was detected; lanes hold values and bits for their rows.
        (done, at) = unsafe { super::avx2::grow(&blocks, rows, at, out, ends) };
    }
    put_rows(runs, done..rows, at, out, ends)
}

/// The portable twin, and the last few rows.
pub(super) fn put_rows(
    runs: &[Lanes<'_>],
    rows: Range<usize>,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> Option<usize> {
    for row in rows {
        for lanes in runs {
            at = match lanes.width() {
                4 => put_row::<4>(lanes.all(), row, at, out)?,
                _ => put_row::<8>(lanes.all(), row, at, out)?,
            };
        }
        ends.push(at as u32);
    }
    Some(at)
}

/// One row of columns of `W` bytes.
#[inline(always)]
fn put_row<const W: usize>(
    lanes: &[Lane<'_>],
    row: usize,
    at: usize,
    out: &mut [u8],
) -> Option<usize> {
    let ones = u64::MAX >> (64 - 8 * W);
    // All that the row can take, so that there is one check, and one byte that is written again.
    let out = out.get_mut(at..at + lanes.len() * (W + 1) + 1)?;
    let mut end = 0;
    for lane in lanes {
        let code = &lane.code;
        let (values, _) = lane.values.as_chunks::<W>();
        let mut word = [0; 8];
        word[..W].copy_from_slice(&values[row]);
        let mut value = u64::from_le_bytes(word);
        if cfg!(target_endian = "big") {
            value = value.swap_bytes() >> (64 - 8 * W);
        }
        let negative = ((value << (64 - 8 * W)) as i64 >> 63) as u64;
        let shifted = (value ^ (negative & code.float) ^ code.flip).wrapping_add(code.delta) & ones;
        let valid = lane.valid.is_none_or(|valid| valid.get(row));
        let edge = shifted.wrapping_add(1) & ones <= 1;
        let longer = code.escapes & valid & edge;
        // No branches: which rows are null, and which longer, is not to be predicted.
        let null = 0u64.wrapping_sub(u64::from(!valid));
        let long = 0u64.wrapping_sub(u64::from(longer));
        let word = (shifted & !null & !long) | (code.null & null) | (!code.null & long & ones);
        let target = &mut out[end..end + W + 1];
        if code.big {
            target[..W].copy_from_slice(&word.to_be_bytes()[8 - W..]);
        } else {
            target[..W].copy_from_slice(&word.to_le_bytes()[..W]);
        }
        target[W] = u8::from(shifted == 0);
        end += W + usize::from(longer);
    }
    Some(at + end)
}
