//! Rows of numbers, some of which take a byte more than most: one row after the other.
//!
//! A number of four or eight bytes whose code is taken by the null is written as all zeros or all
//! ones and a byte more. Where that is common, columns cannot be written one after the other; rows
//! are, each behind the end of the one before.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::lane::{Code, Lane};
use super::lanes::Lanes;
use crate::kernel::values::Values;

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
    if runs.iter().all(|lanes| lanes.width() == 8) {
        let lanes: Vec<Lane<'_>> = runs.iter().flat_map(|lanes| lanes.all()).copied().collect();
        // SAFETY: the features were detected; lanes hold values and bits for their rows.
        (done, at) = unsafe {
            if super::avx512::detected() {
                super::avx512::grow(&lanes, rows, at, out, ends)
            } else if std::arch::is_x86_feature_detected!("avx2") {
                super::avx2::grow(&lanes, rows, at, out, ends)
            } else {
                (0, at)
            }
        };
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

/// Reads back rows of nothing but columns of eight bytes, of which some take a byte more: they lie one
/// behind the other from `start` of `bytes` on, and end at `ends`. Appends the values to `values`, one
/// vector a column, and validity, 64 rows a word, to `valid`. False if a row holds something else;
/// validity is then of no use, and no values are appended.
///
/// # Panics
/// If there are not as many vectors as codes.
pub(crate) fn take_growing(
    codes: &[Code],
    start: usize,
    ends: &[u32],
    bytes: &[u8],
    values: &mut [Values<u64>],
    valid: &mut [Vec<u64>],
) -> bool {
    assert!(codes.len() == values.len() && codes.len() == valid.len(), "a vector for each code");
    let count = ends.len();
    let targets: Vec<*mut u64> = values.iter_mut().map(|values| values.room(count)).collect();
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; there is a target with room for the value of each
        // row.
        match unsafe { super::avx512::shrink(codes, start, ends, bytes, &targets, valid) } {
            Some(count) => done = count,
            None => return false,
        }
    }
    // SAFETY: there is a target with room for the value of each row.
    let fits = unsafe { take_rows(codes, start, ends, done, bytes, &targets, valid) };
    if fits {
        // SAFETY: there is room for a value of each row, and all of them were written.
        values.iter_mut().for_each(|values| unsafe { values.grow(count) });
    }
    fits
}

/// The portable twin, and the last rows: those from `done` on, a multiple of 64.
///
/// # Safety
/// Each of `targets`, one for each code, has room for a value of each row.
pub(super) unsafe fn take_rows(
    codes: &[Code],
    start: usize,
    ends: &[u32],
    done: usize,
    bytes: &[u8],
    targets: &[*mut u64],
    valid: &mut [Vec<u64>],
) -> bool {
    let most = codes.len() * 9;
    let mut padded = vec![0; most];
    let mut words = vec![0; codes.len()];
    let mut wrong = 0;
    let mut start = if done == 0 { start } else { ends[done - 1] as usize };
    for (index, &end) in ends.iter().enumerate().skip(done) {
        let Some(own) = bytes.get(start..end as usize) else { return false };
        // All that the row can take, so that there is one check.
        let cells = match bytes.get(start..start + most) {
            Some(cells) => cells,
            None => {
                padded.fill(0);
                let len = own.len().min(most);
                padded[..len].copy_from_slice(&own[..len]);
                &padded
            }
        };
        // Most rows have no longer number, and their numbers fixed places.
        let is_common = own.len() == codes.len() * 8;
        // SAFETY: there are nine bytes for each code, and a target with room for the value of each row.
        let taken = unsafe {
            match is_common {
                true => take_row::<false>(codes, index, cells, targets, &mut words, &mut wrong),
                false => take_row::<true>(codes, index, cells, targets, &mut words, &mut wrong),
            }
        };
        wrong |= u8::from(taken != own.len());
        start = end as usize;
        if index % 64 == 63 || index + 1 == ends.len() {
            valid.iter_mut().zip(&mut words).for_each(|(valid, word)| {
                valid.push(std::mem::take(word));
            });
        }
    }
    wrong == 0
}

/// Reads row `index` to that place of each target; returns its length. A number is `LONGER` than others
/// or is wrong.
///
/// Benefit: a third faster than with a check for every value.
///
/// # Safety
/// `cells` has nine bytes for each code, and each of `targets` room for a value at `index`.
#[inline(always)]
unsafe fn take_row<const LONGER: bool>(
    codes: &[Code],
    index: usize,
    cells: &[u8],
    targets: &[*mut u64],
    words: &mut [u64],
    wrong: &mut u8,
) -> usize {
    let mut at = 0;
    for ((code, target), valid) in codes.iter().zip(targets).zip(words) {
        // SAFETY: each code in front has moved `at` by nine bytes at the most.
        let (word, behind) = unsafe {
            let cell = cells.as_ptr().add(at);
            (u64::from_be(cell.cast::<u64>().read_unaligned()), cell.add(8).read())
        };
        // Which values are null, and which longer, is not to be predicted.
        let is_null = code.escapes & (word == code.null);
        let longer = code.escapes & (word == !code.null);
        let mut shifted = word;
        if LONGER {
            // 00 stands for all ones, 01 for zero.
            shifted = select_unpredictable(longer, u64::from(behind).wrapping_sub(1), word);
            *wrong |= select_unpredictable(longer, behind & !1, 0);
        } else {
            *wrong |= u8::from(longer);
        }
        let value = shifted.wrapping_sub(code.delta) ^ code.flip;
        let negative = (value as i64 >> 63) as u64;
        let value = select_unpredictable(is_null, 0, value ^ (negative & code.float));
        // SAFETY: as this function's.
        unsafe { target.add(index).write(value) };
        *valid |= u64::from(!is_null) << (index % 64);
        at += 8 + usize::from(LONGER & longer);
    }
    at
}
