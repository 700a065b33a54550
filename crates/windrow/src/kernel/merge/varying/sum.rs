//! Equal neighbours become one row with the sum of their diffs.

use super::super::bytes::{compare_from, diff_at, slide};

/// Adds up equal neighbours among the rows at `start`, which end at `ends` relative to `offset`, and
/// closes the gaps; returns the rows and the bytes that are left. A row whose diffs add up to zero goes,
/// if it had an equal.
///
/// # Safety
/// The rows are there, nothing else refers to them, they agree in their first `at` bytes, and all have
/// `at + 16` bytes or more, the last eight of them a diff.
#[inline(always)]
pub(super) unsafe fn add_up(
    start: *mut u8,
    offset: u32,
    ends: &mut [u32],
    at: usize,
    wrapped: &mut dyn FnMut(&[u8], i64),
) -> (usize, usize) {
    let (mut from, mut to, mut rows) = (start.cast_const(), start, 0);
    let mut carry = 0i64;
    for row in 0..ends.len() {
        // SAFETY: rows stand one behind the other, so the next one starts where this one ends; `to` is at
        // or before `from`, and a row is read whole before it is written over.
        unsafe {
            let end = start.add((ends[row] - offset) as usize).cast_const();
            let next_end = start.add((ends[(row + 1).min(ends.len() - 1)] - offset) as usize);
            let len = end as usize - from as usize;
            let next_len = next_end as usize - end as usize;
            // The last row is followed by none, whose length is zero.
            let goes_on = next_len == len && compare_from(from, end, at, len - 8).1;
            let diff = diff_at(from, len);
            let (sum, overflow) = diff.overflowing_add(carry);
            if overflow {
                let body = std::slice::from_raw_parts(from, len - 8);
                wrapped(body, if carry > 0 { 1 } else { -1 });
            }
            slide(from, to, len);
            to.add(len - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
            carry = if goes_on { sum } else { 0 };
            let stays = !goes_on && sum != 0;
            ends[rows] = offset + (to as usize - start as usize + len) as u32;
            to = to.add(if stays { len } else { 0 });
            rows += usize::from(stays);
            from = end;
        }
    }
    (rows, to as usize - start as usize)
}
